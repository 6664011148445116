"""Is a candidate right? Reference outputs, the error budget, comparison of outputs, verification.

Decides on values alone. Inputs are drawn in `inputs`, times taken in `timing`, cheating is caught in `integrity`.
"""
