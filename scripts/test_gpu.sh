#!/usr/bin/env bash
# Runs everything that needs a GPU, on this machine's GPU, and sums it up.
#   bash scripts/test_gpu.sh              the tests marked gpu, then the planted kernels and the levels of isolation
#   bash scripts/test_gpu.sh -k softmax   arguments go to pytest; the checks beside the tests are left out then
# KERNELBLASTER_PYTHON         an interpreter that has the package's requirements, pytest and hypothesis: nothing is
#                              installed then. Otherwise setup.sh makes .venv.
# KERNELBLASTER_EXTRAS         extras beside dev, such as env,triton: tests skip themselves that lack theirs
# KERNELBLASTER_TRUST_MINUTES  for the planted kernels (default 6); those not begun by then are counted as not judged
# KERNELBLASTER_GPU_OUT        folder for logs and JSON files (default: out/test_gpu)
# Exit status: 0 all passed, 1 something failed, 4 no GPU.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$here/.."
if [ -z "${KERNELBLASTER_PYTHON:-}" ]; then
    KERNELBLASTER_EXTRAS="dev${KERNELBLASTER_EXTRAS:+,$KERNELBLASTER_EXTRAS}" bash "$here/setup.sh" || exit
fi
python=${KERNELBLASTER_PYTHON:-$PWD/.venv/bin/python}
export PYTHONPATH="$PWD/src${PYTHONPATH:+:$PYTHONPATH}" OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
out=${KERNELBLASTER_GPU_OUT:-out/test_gpu}
mkdir -p "$out"

"$python" - <<'PYTHON'
import sys

from kernelblaster.devices.cuda.probe import detect_gpu

gpu = detect_gpu()
if gpu is None:
    sys.exit(4)
print(f"{gpu.name} ({gpu.arch}), driver {gpu.driver_version}, CUDA {gpu.cuda_version}")
PYTHON
status=$?
if [ "$status" = 4 ]; then
    printf 'test_gpu: no NVIDIA GPU that CUDA programs may use was found: nothing was run\n' >&2
    if command -v nvidia-smi >/dev/null; then nvidia-smi -L >&2; fi
    exit 4
fi
[ "$status" = 0 ] || exit 1

summary=()
failed=0
# check NAME COMMAND...: run it, keep what it prints, note its last line.
check() {
    local name=$1 began=$SECONDS code
    shift
    printf '\n== %s: %s\n' "$name" "$*"
    "$@" 2>&1 | tee "$out/$name.log"
    code=${PIPESTATUS[0]}
    [ "$code" = 0 ] || failed=1
    local verdict=passed
    [ "$code" = 0 ] || verdict="FAILED (status $code)"
    summary+=("$(printf '%-10s %s in %d s: %s' "$name" "$verdict" $((SECONDS - began)) "$(grep -v '^$' "$out/$name.log" | tail -n 1)")")
}

# One process: whoever else uses the GPU disturbs what is timed.
check tests "$python" -m pytest -m gpu --all -n 0 -q "$@"
if [ $# = 0 ]; then
    check isolation "$python" benchmarks/isolation_levels.py --json "$out/isolation.json"
    check trust "$python" benchmarks/trust.py --device cuda --json "$out/trust.json" \
        --minutes "${KERNELBLASTER_TRUST_MINUTES:-6}"
fi

printf '\n== summary\n'
"$python" -m kernelblaster --version
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null
printf '%s\n' "${summary[@]}"
grep -hE '^skipped +[0-9]+:' "$out/tests.log"
exit "$failed"
