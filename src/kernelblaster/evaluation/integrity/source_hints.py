"""Hints read off a candidate's text. They warn a person; nothing here refuses a candidate, for text proves nothing.

Comments and the insides of literals are left out, so that words in them raise no alarm. What a source may not contain
at all is refused elsewhere.
"""

from __future__ import annotations

import re

from kernelblaster.cuda_source.lexer import logical_lines

_PATTERNS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\b(?:system|popen|execv\w*|execl\w*|fork|vfork|posix_spawn\w*)\s*\("), "starts processes"),
    (re.compile(r"\b(?:getenv|secure_getenv|setenv|environ)\b"), "reads the environment"),
    (re.compile(r"__attribute__\s*\(\(\s*(?:constructor|destructor)|\[\[\s*gnu::(?:constructor|destructor)"),
     "runs code before or after main"),
    (re.compile(r"\b(?:dlopen|dlsym|dlmopen)\s*\("), "loads code at run time"),
    (re.compile(r"\b(?:fopen|open|openat|mmap|ifstream|ofstream|fstream|ptrace|process_vm_\w+)\s*[(<{ ]"),
     "opens files or other processes"),
    (re.compile(r"\b(?:std::(?:thread|jthread|async)|pthread_create)\b"), "starts host threads"),
    (re.compile(r"\bcuda(?:StreamBeginCapture|GraphLaunch|GraphInstantiate)\w*\b"), "uses CUDA graphs"),
    (re.compile(r"\bcudaStreamNonBlocking\b|\bcudaStreamCreateWith\w+\b"), "uses streams beside the default one"),
    (re.compile(r"\bcudaEvent(?:ElapsedTime|Record)\w*\b"), "handles CUDA events"),
    (re.compile(r"\bcudaAccessPropertyPersisting\b|\bcudaLimitPersistingL2CacheSize\b"), "keeps lines in L2"),
    (re.compile(r"\bglobaltimer\b|\bclock64\s*\(|\bclock\s*\("), "reads clocks"),
    (re.compile(r"^[ \t]*#[ \t]*define[ \t]+(?:main|KB_\w+|cuda\w+)\b", re.MULTILINE), "redefines harness names"),
    (re.compile(r"\bstatic\s+(?:bool|int|void\s*\*|float\s*\*|cuda\w+)\s+\w+[^;(]*;"), "keeps static host state"),
)  # fmt: skip


def hints(source: str) -> list[str]:
    """What in a source deserves a look, one line each."""
    text = logical_lines(source, literals=False)
    return [f"the source {what}" for pattern, what in _PATTERNS if pattern.search(text)]
