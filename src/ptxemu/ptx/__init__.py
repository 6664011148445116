"""From nvcc's PTX to the bytecode that the SIMT core executes.

`syntax` splits and parses the text into `tree`, `analysis/` says what ptxas would make of it, `registers` lays out
registers, `lowering` functions, `selection/` chooses operations, `module` holds the result and its file format;
`assembler` is the front door. Executing anything is the core's work, not done here.
"""
