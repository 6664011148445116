"""What is optimised: problem directories, their sizes, tensors and references.

Nothing here builds, runs or judges a candidate.
"""
