"""CUDA C++ as text: the one reader of it, and the one place that names and describes the launcher.

Nothing here parses C++ beyond tokens and directives, runs a tool, or judges what it reads.
"""
