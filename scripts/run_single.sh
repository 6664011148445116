#!/usr/bin/env bash
# Optimises kernels: a thin shell over `kernelblaster run`. See README.md, or `scripts/run_single.sh --help`.
#   bash scripts/run_single.sh                               softmax (level1 problem 23)
#   bash scripts/run_single.sh --problem-numbers 1-10,23     several problems of a level
#   bash scripts/run_single.sh --subset level2               a whole level
# Environment: OPENAI_API_KEY OPENAI_BASE_URL MODEL GPU_TYPE DATASET PRECISION EXPERIMENT_NAME RL_EXPERIMENT_NAME, or .env
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bash "$here/setup.sh"
exec "$here/../.venv/bin/kernelblaster" run "$@"
