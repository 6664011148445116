"""The rules that every candidate is built under, as the policy that devices are given."""

from __future__ import annotations

import hashlib
from functools import cached_property
from pathlib import Path

from kernelblaster.cuda_source import lexer
from kernelblaster.devices.build.policy import CompiledCandidate, ObjectFindings
from kernelblaster.evaluation.integrity import source_rules, symbol_allowlist, symbol_rules


class CandidateRules:
    """A candidate is a kernel and its launcher, and nothing else. Satisfies `devices.build.policy.CandidatePolicy`."""

    @cached_property
    def version(self) -> str:
        """SHA-256 over the rules as they are written."""
        state = hashlib.sha256()
        for module in (lexer, source_rules, symbol_allowlist, symbol_rules):
            state.update(Path(str(module.__file__)).read_bytes())
        return state.hexdigest()

    def check_source(self, source: str) -> None:
        """Raise BuildFailure (POLICY) when it reaches for files that are not the toolkit's headers."""
        source_rules.check_source(source)

    def check_object(self, compiled: CompiledCandidate) -> ObjectFindings:
        """What it asks for. Raises BuildFailure (POLICY) when it defines, asks for or does what it may not."""
        hints = symbol_rules.check_symbols(
            compiled.symbols, compiled.harness, compiled.libraries, contained=compiled.contained
        )
        if not compiled.contained:
            symbol_rules.check_instructions(compiled.disassembly)
        return ObjectFindings(hints, symbol_rules.own_streams(compiled.symbols))
