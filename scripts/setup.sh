#!/usr/bin/env bash
# Installs what is missing into .venv, pinned by constraints.txt. Called by run_single.sh and test.sh; safe to run alone.
#   KERNELBLASTER_EXTRAS  pip extras to install such as env,triton (nvcc is added where none is found; test.sh adds dev)
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
venv="$root/.venv"

say() { printf 'setup: %s\n' "$*" >&2; }
die() { printf 'setup: %s\n' "$1" >&2; [ $# -lt 2 ] || printf '  -> %s\n' "$2" >&2; exit 4; }

python=${PYTHON:-python3}
command -v "$python" >/dev/null || die "python3 is missing" "apt-get install python3 python3-venv"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || die "$("$python" --version) is too old" "install Python 3.11 or newer, or set PYTHON=/path/to/python3.11"
command -v g++ >/dev/null || die "g++ is missing" "apt-get install g++"

has_nvcc() {
    local nvcc
    for nvcc in nvcc "${CUDA_HOME:-/nowhere}/bin/nvcc" /usr/local/cuda*/bin/nvcc; do
        "$nvcc" --version >/dev/null 2>&1 && return 0
    done
    return 1
}

extras=${KERNELBLASTER_EXTRAS:-}
has_nvcc || extras="${extras:+$extras,}nvcc"

# A machine that brings its own torch (2.6 or newer) keeps it: it matches that machine's GPU driver.
own_torch() { "$python" -c 'import importlib.metadata as m; v = m.version("torch").split(".")[:2]; raise SystemExit((int(v[0]), int(v[1])) < (2, 6))' 2>/dev/null; }

stamp="$venv/.kernelblaster-setup"
want="$extras $(cat "$root/constraints.txt" "$root/pyproject.toml" | sha256sum | cut -c1-16)"
is_done() { [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$want" ]; }
if is_done; then exit 0; fi

# One set-up at a time: whoever comes second finds the work of the first done. The lock goes with the process.
if command -v flock >/dev/null; then
    exec 9<"$root"
    if ! flock --nonblock 9; then
        say "another set-up is at work in $root; waiting for it"
        flock 9 || say "the directory cannot be locked: going on without"
    fi
    if is_done; then exit 0; fi
fi

if [ ! -x "$venv/bin/python" ]; then
    site=""
    if own_torch; then say "using this machine's own torch"; site="--system-site-packages"; fi
    "$python" -m venv $site "$venv" || die "python3 -m venv failed" "apt-get install python3-venv"
fi
constraints="$root/constraints.txt"
if "$venv/bin/python" -c 'import torch' 2>/dev/null; then
    constraints=$(mktemp)
    trap 'rm -f "$constraints"' EXIT
    grep -viE '^(torch|numpy)==' "$root/constraints.txt" > "$constraints"
fi
say "installing into .venv${extras:+ with extras: $extras} (torch makes the first time take a few minutes)"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --constraint "$constraints" \
    --editable "$root${extras:+[$extras]}" || die "pip install failed" "read the lines above; is there network and disk space?"
printf '%s' "$want" > "$stamp"
