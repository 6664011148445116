"""Everything against cheating: rules for source and symbols, checks of timed calls, admission of problems.

A new exploit is refused by a rule here. Numerical tolerance is decided in `correctness`, what a process can reach in
`sandbox`.
"""
