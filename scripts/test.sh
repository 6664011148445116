#!/usr/bin/env bash
# Sets up like run_single.sh and runs the tests; arguments go to pytest
# (e.g. -m "not slow", tests/models, -n 0 for one process).
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
KERNELBLASTER_EXTRAS=dev bash "$here/setup.sh"
cd "$here/.."
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
exec .venv/bin/python -m pytest --numprocesses auto --dist loadfile "$@"
