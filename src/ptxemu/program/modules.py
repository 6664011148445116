"""What the core is started with beside a program: the assembled module and the figures of the GPU it stands for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path

from ptxemu.errors import ProgramNotEmulatable
from ptxemu.files import write_whole
from ptxemu.machine.ptxas import PtxasResources
from ptxemu.model.architecture import GpuModel
from ptxemu.ptx import assembler
from ptxemu.ptx.errors import NotEmulatable
from ptxemu.ptx.limits import MOST_TEXT_BYTES
from ptxemu.ptx.location import source_location
from ptxemu.ptx.text import read_ptx


def module_path(program: Path) -> Path:
    """Where the module of a program lies; another version of the assembler looks elsewhere."""
    return program.with_suffix(f".{_assembler_digest()}.module")


def ensure_module(
    program: Path, ptx: Path, system_dirs: Sequence[Path], resources: Sequence[PtxasResources] = ()
) -> Path:
    """Assemble a program's PTX, once.

    Args:
        program: what the module is put next to.
        ptx: the program's.
        system_dirs: headers of which nobody wants to see lines: those of the toolkit.
        resources: what ptxas reports of its kernels, for questions about occupancy.

    Raises:
        ProgramNotEmulatable: naming the instruction, its PTX line and, with `-lineinfo`, its source line; or too long.
    """
    module = module_path(program)
    if module.exists():
        return module
    size = ptx.stat().st_size
    if size > MOST_TEXT_BYTES:
        raise ProgramNotEmulatable(f"its PTX has {size} bytes (at most {MOST_TEXT_BYTES} are assembled)")
    text = read_ptx(ptx)
    try:
        assembled = assembler.assemble(text, system_dirs)
    except NotEmulatable as error:
        raise _not_emulatable(error, text) from error
    registers = {one.symbol: one.registers for one in resources}
    for kernel in assembled.kernels:
        kernel.registers_per_thread = registers.get(kernel.name, 0)
    write_whole(module, assembled.write)
    return module


def ensure_list(modules: Mapping[int, Path]) -> Path:
    """File that tells the core which module belongs to what host code registers, by CRC-32."""
    lines = ["ptxemu modules", *(f"{digest} {module}" for digest, module in modules.items())]
    text = "".join(f"{line}\n" for line in lines)
    path = next(iter(modules.values())).with_name(f"{sha256(text.encode()).hexdigest()[:16]}.modules")
    if not path.exists():
        write_whole(path, lambda partial: partial.write_text(text, encoding="utf-8"))
    return path


def ensure_figures(gpu: GpuModel, cache_dir: Path) -> Path:
    """File that tells the runtime which GPU it stands for, named by its content."""
    text = gpu.figures()
    path = cache_dir / f"emulated-{sha256(text.encode()).hexdigest()[:16]}.figures"
    if not path.exists():
        write_whole(path, lambda partial: partial.write_text(text, encoding="utf-8"))
    return path


def missing_runtime_functions(undefined: Sequence[str]) -> str | None:
    """What to say of a program that only lacks CUDA functions when it is linked; None when it lacks something else."""
    if not undefined or not all(name.lstrip("_").startswith("cuda") for name in undefined):
        return None
    return f"the stand-in CUDA runtime has no {', '.join(undefined)}"


@cache
def _assembler_digest() -> str:
    """Names modules, so that those of another version of the assembler are not taken for this one's."""
    sources = sorted(Path(assembler.__file__).parent.rglob("*.py"))
    return sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:16]


def _not_emulatable(error: NotEmulatable, ptx: str) -> ProgramNotEmulatable:
    place = source_location(ptx, error.line)
    where = f" ({place})" if place else ""
    return ProgramNotEmulatable(f"PTX line {error.line}{where}: {error.instruction}: {error.reason}", log=str(error))
