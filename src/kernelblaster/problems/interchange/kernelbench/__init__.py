"""PyTorch modules in KernelBench's form (`Model`, `get_inputs`, `get_init_inputs`) as problem directories.

`checkout` finds them in a checkout, `module_text` and `module_numbers` read one without running it, `literal_extents`
and `idle_numbers` say which of its numbers are extents, `meta_run` runs it for its shapes, `small_size` and
`inert_numbers` find a size that is cheap to check, and `importing` makes the directory.
"""
