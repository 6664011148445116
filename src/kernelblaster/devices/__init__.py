"""Where candidates are built and run: `cuda` (a real GPU) and `emulated` (an adapter to `ptxemu`).

`base` is the seam, `build` makes programs, `harness` is the program that calls a candidate, `metrics` names counters. A
device builds, runs, samples and profiles. It knows nothing of references, verdict policy or models.
"""
