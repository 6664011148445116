"""`python -m kernelblaster`: the same as the console script."""

from kernelblaster.cli import main

main()
