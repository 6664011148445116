"""Candidate -> `Evaluation`: build, verify, time, profile. Seeds, reference and verdict live here, nowhere else.

Nothing here knows of models, knowledge bases or graphs.
"""
