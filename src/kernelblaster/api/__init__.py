"""The public library: what `import kernelblaster` offers, and all that the command line is built on.

Functions here take plain arguments, open what they need, and close it again. They never print, and hold neither search
logic (agent) nor judgement (evaluation). `kernelblaster/__init__.pyi` lists every public name.
"""
