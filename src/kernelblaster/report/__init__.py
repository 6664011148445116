"""The static, self-contained HTML page of a run. Reads what the run wrote; computes nothing that was not recorded.

`reading.py` reads a problem's files, the modules beside it turn them into what templates show (functions from data to
data), `build.py` puts the page together. Figures are SVG; the one script opens what is packed (`packing.py`).
"""
