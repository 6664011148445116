"""Problems, kernels and results in the formats of FlashInfer-Bench and SOL-ExecBench: read, written, made into ours.

`bundle` is what both formats hold of one problem, `flashinfer` and `sol` are their files, `kept` keeps what was
imported beside a problem, `problem_files` and `start` make the three files of a problem out of it, `exported` makes a
bundle out of a problem of ours. Nothing here builds, runs or judges.
"""
