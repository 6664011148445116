"""`python -m ptxemu PROGRAM.cu`."""

from __future__ import annotations

from ptxemu.command import entry

if __name__ == "__main__":
    entry()
