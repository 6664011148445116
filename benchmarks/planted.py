"""Planted kernels: exploits that the evaluation must refuse or render useless, and honest kernels that it must pass.

They lie in `tests/adversarial/exploits` and `tests/adversarial/honest`, one self-contained candidate per file. Comment
lines at the top say what a file is, `key: value`, a value may go on in the next line:

    row        which known exploit it is (T timing, V verification, N below); absent for honest kernels
    problem    whose launcher it defines, e.g. level1/23
    does       what it does, in a phrase
    emulated   outcomes that are right on the emulated device, `-` where it cannot run there
    cuda       outcomes that are right on a GPU
    precision, size, libraries, timeout   of the evaluation, where not fp16, small, none, 60 s
    sets       input sets of the evaluation, where not the usual number; 1: that of the timed size alone
    twin       what it is timed against: `init` or the name of an honest kernel
    gap_emulated, gap_cuda   why the evaluation misses it there, where it does

Rows from N01 on are mechanisms that no catalogue lists:

    N01 files by other names                      N08 the C++ runtime that harness and candidate share
    N02 libraries found in memory                 N09 state of the process and of the device left behind
    N03 system calls and code that nobody sees    N10 what is taken for the machine's fault
    N04 files embedded by the assembler           N11 values that are easy at the timed size
    N05 arguments, environment and commands       N12 clocks, phases and commands of a timing
    N06 code before and after main                N13 the channel of the emulated device
    N07 functions of CUDA that do more            N14 batches that the judge alone times
    N15 memory of the harness                     N16 some elements that are taken for all
    N17 integers that are easy                    N18 answers in the harness' name, and repaired outputs
    N19 paths for the declared shapes alone       N20 lines that L2 keeps for the next call
    N21 blocks far apart that wait for nobody

Rows from P01 on are Triton modules, with `#` before each line of the header; they are judged where Triton is installed:

    P01 clocks and synchronisation replaced       P06 PyTorch for the answer
    P02 tensors that compute when they are used   P07 an output that no kernel wrote
    P03 results that are kept, calls counted      P08 the process that records, from within
    P04 streams of one's own                      P09 files and processes
    P05 inputs returned, or written to

What an exploit of these rows attempts decides what it computes: where the attempt is in vain it computes nothing, or
nothing faster than its twin.

Kernels of N19 are right at every shape that no prompt shows. They meet the input set of the timed size alone: on the
emulated device, which judges outputs at no other declared size than the small one, the other sets would refuse them.

A folder that others wrote (`load_folder`) may hold Triton modules, too. It
needs `problem` and `kind` (exploit or honest) alone, and says in `expects` what success would be. An exploit is timed
against the same kernel without the trick, or against the problem's start where there is none; any outcome in which it
gains nothing is right. Such a twin is the file of its name in the folder's `twins`, or the one that `twins/shared.json`
names for it; the file has no header, for that of the exploit counts.

An outcome is the verdict; `harmless` is `correct` without being faster than the twin; `sanitizer_error` is `correct`
with findings of the sanitizers, which every finalist of a search must pass.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from enum import StrEnum
from itertools import takewhile
from pathlib import Path

from kernelblaster.devices.facts import DeviceKind, Library
from kernelblaster.evaluation.results import Verdict
from kernelblaster.problems.problem import Precision, StandardWorkload
from kernelblaster.python_candidates.language import CandidateLanguage, language_of
from kernelblaster.python_candidates.recording import has_triton

ADVERSARIAL = Path(__file__).resolve().parent.parent / "tests" / "adversarial"
EXPLOITS = ADVERSARIAL / "exploits"
HONEST = ADVERSARIAL / "honest"
HARMLESS = "harmless"
_GAINS_NOTHING = frozenset({HARMLESS} | {verdict.value for verdict in Verdict} - {Verdict.CORRECT.value})
_NEEDED = frozenset({"problem", "does", "emulated", "cuda"})
_OPTIONAL = frozenset({"row", "precision", "size", "libraries", "timeout", "sets", "twin", "gap_emulated", "gap_cuda"})
_FOREIGN = frozenset({"problem", "kind", "expects", "precision", "size"})
_FIELD = re.compile(r"^(?://|#) (\w+): (.*)$")
_CONTINUES = ("//   ", "#   ")
_SUFFIXES = {".cu", ".py"}


class Kind(StrEnum):
    """What a planted kernel is for."""

    EXPLOIT = "exploit"
    HONEST = "honest"


@dataclass(frozen=True)
class Planted:
    """One planted kernel.

    Attributes:
        name: of its file, without suffix.
        row: of the catalogue of known exploits; empty for an honest kernel.
        expected: outcomes that are right, per device kind; none where it cannot run.
        size: that is timed on a GPU; the emulated device always takes `small`.
        timeout_s: of one call.
        sets: input sets that it meets; None: as many as any candidate.
        twin: what it is timed against: `init`, or the name of a kernel; None: timed alone.
        twin_source: of that kernel; None where there is none, and for `init`, which the problem holds.
        gaps: why the evaluation misses it, per device kind; absent where it must not.
    """

    name: str
    kind: Kind
    row: str
    problem: str
    does: str
    expected: dict[DeviceKind, frozenset[str]]
    precision: Precision
    size: StandardWorkload
    libraries: tuple[Library, ...]
    timeout_s: float
    sets: int | None
    twin: str | None
    twin_source: str | None
    gaps: dict[DeviceKind, str]
    source: str

    @property
    def in_python(self) -> bool:
        """Whether it is a Python module."""
        return language_of(self.source) is not CandidateLanguage.CUDA

    def runs_on(self, device: DeviceKind) -> bool:
        """Whether it can be judged there."""
        return bool(self.expected[device]) and (has_triton() or not self.in_python)

    def size_on(self, device: DeviceKind) -> StandardWorkload:
        """The size that is timed there."""
        return StandardWorkload.SMALL if device is DeviceKind.EMULATED else self.size


def load(path: Path) -> Planted:
    """One planted kernel. Raises ValueError when its header says too little or something unknown."""
    source = path.read_text(encoding="utf-8")
    fields = _header(source)
    unknown, missing = fields.keys() - _NEEDED - _OPTIONAL, _NEEDED - fields.keys()
    if unknown or missing:
        raise ValueError(f"{path}: unknown keys {sorted(unknown)}, missing keys {sorted(missing)}")
    kind = Kind.EXPLOIT if path.parent.name == EXPLOITS.name else Kind.HONEST
    twin = fields.get("twin")
    return Planted(
        name=path.stem,
        kind=kind,
        row=fields.get("row", ""),
        problem=fields["problem"],
        does=fields["does"],
        expected={
            device: frozenset() if fields[device] == "-" else frozenset(fields[device].split()) for device in DeviceKind
        },
        precision=Precision(fields.get("precision", "fp16")),
        size=StandardWorkload(fields.get("size", "small")),
        libraries=tuple(Library(name) for name in fields.get("libraries", "").split()),
        timeout_s=float(fields.get("timeout", "60")),
        sets=int(fields["sets"]) if "sets" in fields else None,
        twin=twin,
        twin_source=None if twin in (None, "init") else (HONEST / f"{twin}{path.suffix}").read_text(encoding="utf-8"),
        gaps={device: fields[f"gap_{device}"] for device in DeviceKind if f"gap_{device}" in fields},
        source=source,
    )


def load_all(kind: Kind | None = None) -> list[Planted]:
    """All planted kernels of a kind, by name."""
    folders = {Kind.EXPLOIT: EXPLOITS, Kind.HONEST: HONEST}
    chosen = folders.values() if kind is None else [folders[kind]]
    return [load(path) for folder in chosen for path in sorted(folder.iterdir()) if path.suffix in _SUFFIXES]


def load_folder(folder: Path) -> list[Planted]:
    """Kernels that others wrote to attack the evaluation, by name. Raises ValueError where a header says too little."""
    return [_load_foreign(path) for path in sorted(folder.iterdir()) if path.suffix in _SUFFIXES]


def _load_foreign(path: Path) -> Planted:
    source = path.read_text(encoding="utf-8")
    fields = {key: value for key, value in _header(source).items() if key in _FOREIGN}
    if missing := {"problem", "kind"} - fields.keys():
        raise ValueError(f"{path}: missing keys {sorted(missing)}")
    kind = Kind(fields["kind"].split()[0])
    twin = None if kind is Kind.HONEST else _foreign_twin(path)
    right = frozenset({Verdict.CORRECT.value}) if kind is Kind.HONEST else _GAINS_NOTHING
    return Planted(
        name=path.stem,
        kind=kind,
        row=path.parent.name,
        problem=fields["problem"].split()[0],
        does=fields.get("expects", ""),
        expected=dict.fromkeys(DeviceKind, right),
        precision=Precision(fields.get("precision", "fp16").split()[0]),
        size=StandardWorkload(fields.get("size", "medium").split()[0]),
        libraries=(),
        timeout_s=60.0,
        sets=None,
        twin=None if kind is Kind.HONEST else "init" if twin is None else twin.stem,
        twin_source=None if twin is None else _header_text(source) + twin.read_text(encoding="utf-8"),
        gaps={},
        source=source,
    )


def _foreign_twin(path: Path) -> Path | None:
    """The file of a kernel's twin; None where it has none."""
    twins = path.parent / "twins"
    shared = twins / "shared.json"
    names: dict[str, str] = json.loads(shared.read_text(encoding="utf-8")) if shared.is_file() else {}
    if path.stem in names:
        return twins / names[path.stem]
    return twins / path.name if (twins / path.name).is_file() else None


def _header_text(source: str) -> str:
    lines = source.splitlines(keepends=True)
    return "".join(takewhile(lambda line: _FIELD.match(line) or line.startswith(_CONTINUES), lines))


def _header(source: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    key = ""
    for line in _header_text(source).splitlines():
        match = _FIELD.match(line)
        if match:
            goes_on = match[1] == key  # some authors repeat the key in each line
            key = match[1]
            fields[key] = f"{fields[key]} {match[2].strip()}" if goes_on else match[2].strip()
        elif key:
            fields[key] += " " + line.lstrip("/#").strip()
    return fields
