"""What the checks of memory, races and barriers found; the checks themselves are the core's (`core/src/checks.cpp`)."""
