"""Tests of runs share the stand-in of a GPU with those of the evaluation."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "evaluation"))
