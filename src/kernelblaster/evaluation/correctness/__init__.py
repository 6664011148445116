"""Is a candidate right? Reference outputs, the error budget, comparison, verification."""
