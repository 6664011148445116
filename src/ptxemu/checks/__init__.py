"""What the checks of memory, races and barriers found.

The checks themselves run in the core (`core/src/checks.cpp`); nothing here executes or times anything.
"""
