"""What is optimised: problem directories, their sizes, tensors and references.

Nothing here builds, runs or judges a candidate, but for `foreign_program`: a foreign directory's own driver builds
against libtorch, judges itself, and is believed only weakly.
"""
