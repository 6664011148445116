"""Candidate -> `Evaluation`: build, verify, time, profile. Seeds, reference and verdict live here, nowhere else.

`evaluator` is the way in, `pipeline` runs the stages of one candidate, `results` is what comes out. The folders, each
of which may use those after it: `integrity` (is the result earned?), `correctness` (are the values right?), `processes`
(what runs), `timing` (how long does it take?), `inputs` (on which values?). Nothing here knows of models, knowledge
bases or graphs.
"""
