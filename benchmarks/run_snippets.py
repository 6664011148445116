"""Compile every snippet of the knowledge base for this GPU, run its own check, and print what came of it as JSON.

    python benchmarks/run_snippets.py > docs/results/h200_snippets.json

Needs nvcc and a GPU of sm_90. Exit code 1 when a program does not build or its check fails; warnings of ptxas are kept.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

SNIPPETS = Path(__file__).parents[1] / "data" / "kb" / "snippets"
BUILD = ("nvcc", "-std=c++17", "-O3", "-gencode", "arch=compute_90a,code=sm_90a", "-Xptxas", "-v", "-o")
QUERY = ("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader")
MOST_SECONDS = 120


def outcome(program: Path, room: Path) -> dict[str, object]:
    """How building and running one program ended."""
    built = subprocess.run(
        [*BUILD, str(room / program.stem), str(program)], capture_output=True, text=True, check=False
    )
    if built.returncode:
        return {"program": program.name, "built": False, "said": built.stderr[-2000:]}
    warnings = [line for line in built.stderr.splitlines() if "warning" in line.lower()]
    ran = subprocess.run([str(room / program.stem)], capture_output=True, text=True, timeout=MOST_SECONDS, check=False)
    passed = ran.returncode == 0 and ran.stdout.strip() == "ok"
    return {"program": program.name, "built": True, "passed": passed, "said": ran.stdout.strip(), "warnings": warnings}


def main() -> int:
    """Run all and print."""
    device = subprocess.run(QUERY, capture_output=True, text=True, check=True).stdout.strip()
    with tempfile.TemporaryDirectory() as room:
        found = [outcome(program, Path(room)) for program in sorted(SNIPPETS.glob("*.cu"))]
    print(json.dumps({"device": device, "snippets": found}, indent=1))
    return 0 if all(one.get("passed") for one in found) else 1


if __name__ == "__main__":
    sys.exit(main())
