#!/usr/bin/env bash
# Sets up like run_single.sh, then runs the checks (ruff, mypy) and the tests; what mypy says comes last.
#   bash scripts/test.sh                  checks and the default tests; this is what continuous integration runs
#   bash scripts/test.sh --all            and the tests that are left out for their time
#   bash scripts/test.sh -q -n 4          options go to pytest
#   bash scripts/test.sh tests/models     a part of the tests, named by path, -k, -m or --lf: without the checks
# At the end it says what was skipped and why, and how many tests only --all runs.
# KERNELBLASTER_EXTRAS: extras beside dev, whose tests skip themselves without them, such as
#   KERNELBLASTER_EXTRAS=env,triton bash scripts/test.sh tests/environment tests/python_candidates
#   KERNELBLASTER_EXTRAS=env,train,triton bash scripts/test.sh
# KERNELBLASTER_PYTHON: an interpreter that has the package's requirements and dev tools; nothing is installed then.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$here/.."
if [ -z "${KERNELBLASTER_PYTHON:-}" ]; then
    KERNELBLASTER_EXTRAS="dev${KERNELBLASTER_EXTRAS:+,$KERNELBLASTER_EXTRAS}" bash "$here/setup.sh"
fi
python=${KERNELBLASTER_PYTHON:-$PWD/.venv/bin/python}
unset PYTHONDONTWRITEBYTECODE # Hundreds of processes import the same modules.
export PYTHONPATH="$PWD/src${PYTHONPATH:+:$PYTHONPATH}" OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}

selects=
for argument in "$@"; do
    case $argument in
        -k* | -m* | --lf | --last-failed | --ff | --failed-first) selects=yes ;;
        -*) ;;
        *) if [ -e "${argument%%::*}" ]; then selects=yes; fi ;;
    esac
done
tests=("$python" -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder "$@")
[ -z "$selects" ] || exec "${tests[@]}"
"$python" -m ruff check --quiet src tests benchmarks
"$python" -m ruff format --quiet --check src tests benchmarks
# mypy has one process: beside the tests it takes the cores that they leave.
types=$(mktemp)
"$python" -m mypy > "$types" 2>&1 &
mypy=$!
trap 'kill "$mypy" 2> /dev/null || true; rm -f "$types"' EXIT
failed=0
"${tests[@]}" || failed=$?
wait "$mypy" || failed=1
cat "$types"
exit "$failed"
