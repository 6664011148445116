"""`python -m ptxemu PROGRAM.cu`."""

from __future__ import annotations

import sys

from ptxemu.command import main

if __name__ == "__main__":
    sys.exit(main())
