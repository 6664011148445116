"""Everything against cheating: source and symbol rules, checks of timed calls, admission of problems."""
