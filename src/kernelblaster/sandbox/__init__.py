"""Runs one command that is not trusted, with this view of the machine and these limits. Knows nothing of CUDA."""
