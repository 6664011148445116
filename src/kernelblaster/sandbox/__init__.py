"""Runs one command that is not trusted, with this view of the machine and these limits.

`process` is the way in. `isolation` plans what the command sees, `linux_isolation` and bubblewrap carry it out,
`supervisor` starts the command and ends all of it. Nothing here knows of CUDA, candidates or verdicts.
"""
