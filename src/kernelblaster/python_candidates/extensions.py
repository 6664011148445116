"""CUDA inside Python: what stands for `torch.utils.cpp_extension.load_inline` while a candidate is recorded.

The sources are kept as text, and calls of their functions are noted in the place of made. They are compiled with the
candidate's other kernels, behind a header that stands for PyTorch's C++ interface (`inline_torch.cuh`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Protocol

import torch

from kernelblaster.python_candidates.plan import CANDIDATE, ExtensionSource, RefusalKind
from kernelblaster.python_candidates.trace import CallTrace, NotRecorded

_BOUND = re.compile(r"\.def\(\s*\"(\w{1,200})\"")
_FLAGS = ("extra_cflags", "extra_cuda_cflags", "extra_ldflags", "extra_include_paths")
FLAGS_LEFT_OUT = "load_inline: compiler and linker flags are left out; all candidates are compiled alike"


class Traced(Protocol):
    """Who records calls."""

    sources: list[ExtensionSource]
    warnings: dict[str, None]
    trace: CallTrace | None


class Extensions:
    """Loads extensions by keeping their sources.

    Args:
        recorder: gets the sources, and the call that is recorded.
    """

    def __init__(self, recorder: Traced) -> None:
        self._recorder = recorder

    def load_inline(
        self,
        name: str,
        cpp_sources: str | Sequence[str] = (),
        cuda_sources: str | Sequence[str] = (),
        functions: str | Sequence[str] | Mapping[str, str] | None = None,
        **options: Any,
    ) -> SimpleNamespace:
        """As of PyTorch; what is returned has the functions. Raises NotRecorded."""
        texts = [text for text in (*_texts(cpp_sources), *_texts(cuda_sources or ())) if text.strip()]
        if any(options.get(flag) for flag in _FLAGS):
            self._recorder.warnings[FLAGS_LEFT_OUT] = None
        for text in texts:
            kept = ExtensionSource(text=text, line=_line_in_candidate(text))
            if kept not in self._recorder.sources:
                self._recorder.sources.append(kept)
        whole = "\n".join(texts)
        names = [functions] if isinstance(functions, str) else list(functions or ()) or _BOUND.findall(whole)
        if not names:
            raise NotRecorded(RefusalKind.LAUNCH, f"load_inline: {name} has no functions", "name them: functions=[...]")
        return SimpleNamespace(**{one: self._function(one, whole) for one in names})

    def _function(self, name: str, sources: str) -> Any:
        returns = re.search(rf"\bvoid\s+{re.escape(name)}\s*\(", sources) is None

        def call(*arguments: Any, **named: Any) -> torch.Tensor | None:
            trace = self._recorder.trace
            if trace is None:
                hint = "call it in forward; the constructor sees no values"
                raise NotRecorded(RefusalKind.LAUNCH, f"{name} is called outside of forward", hint)
            if named:
                raise trace.refuse(RefusalKind.LAUNCH, f"{name} is called with names", "give its arguments in order")
            return trace.call(name, arguments, returns=returns)

        return call


def _texts(sources: str | Sequence[str]) -> list[str]:
    return [sources] if isinstance(sources, str) else list(sources)


def _line_in_candidate(text: str) -> int:
    """The line of the module on which a source begins; 0 where it does not stand there as it is."""
    module = Path(CANDIDATE).read_text(encoding="utf-8")
    place = module.find(text) if text.strip() else -1
    return 0 if place < 0 else module.count("\n", 0, place) + 1
