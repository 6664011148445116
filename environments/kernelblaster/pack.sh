#!/usr/bin/env bash
# Puts the product's files of this checkout beside the Dockerfile, whose context is this folder alone. What is committed
# is packed; edits that are not are left out, and told.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(git -C "$here" rev-parse --show-toplevel)
git -C "$root" archive --format=tar.gz --output "$here/kernelblaster.tar.gz" HEAD -- \
    pyproject.toml constraints.txt README.md LICENSE scripts src data
git -C "$root" diff --quiet HEAD -- src data scripts || echo "pack: edits that are not committed are left out" >&2
echo "pack: $here/kernelblaster.tar.gz of $(git -C "$root" rev-parse --short HEAD)" >&2
