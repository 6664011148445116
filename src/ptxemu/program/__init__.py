"""A CUDA program with a `main`: compile it, assemble its PTX, run it on the core, and say what its kernels did.

The way in for `api` and `command`. Instructions, checks and times are the other folders' business.
"""
