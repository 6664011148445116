"""Which operations of the core a PTX instruction becomes, one module for each family of instructions."""
