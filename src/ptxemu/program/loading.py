"""The command that the core starts for PTX that a program loads while it runs: assembles it and names the module.

    python -I -c "import sys; sys.path.insert(0, ...); ..." ARCH CACHE TEXT

prints the path of the module. Ends with 4 when the text needs what the emulator lacks, with 2 when ptxas refuses it.
"""

from __future__ import annotations

import sys
from pathlib import Path

from ptxemu.errors import EmulatorError
from ptxemu.model.architecture import GpuModel, gpu_of_architecture
from ptxemu.program.texts import build_kernels
from ptxemu.ptx.text import read_ptx
from ptxemu.toolkit import CudaToolkit

_PACKAGES = str(Path(__file__).resolve().parents[2])


def loader_command(gpu: GpuModel, cache_dir: Path) -> str:
    """Its words but the last, the file with the text, in lines: what PTXEMU_LOADER is set to."""
    start = f"import sys; sys.path.insert(0, {_PACKAGES!r}); from ptxemu.program.loading import main; main()"
    return "\n".join((sys.executable, "-I", "-c", start, gpu.gpu.arch, str(cache_dir.resolve())))


def main() -> None:
    """Assemble one text."""
    arch, cache, text = sys.argv[1:]
    try:
        gpu, content = gpu_of_architecture(arch), read_ptx(Path(text))
        built = build_kernels(content, CudaToolkit.find(), gpu.architecture.compile_arch, Path(cache))
    except EmulatorError as error:
        print(error.message, file=sys.stderr)
        sys.exit(error.exit_code)
    print(built.module)
