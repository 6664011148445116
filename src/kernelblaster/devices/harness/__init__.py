"""The host harness that calls a candidate: its C++ sources, and the Python side that talks to it."""
