"""On which values a candidate is judged: distributions, drawing, perturbations between timed calls, files.

References and comparisons of outputs lie in `correctness`.
"""
