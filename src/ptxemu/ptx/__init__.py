"""From nvcc's PTX to the bytecode that the SIMT core executes.

`syntax` splits and parses the text, `lowering` chooses operations and lays out registers, `module` holds the result
and its file format, `assembler` is the front door. Executing anything is the core's work, not done here.
"""
