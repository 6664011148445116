"""What ptxas made of a kernel: its machine code beside the PTX, and how often each instruction is executed.

Nothing is executed here. The core counts PTX lines; the line table that ptxas leaves in the cubin says which machine
instructions stem from which of them.
"""
