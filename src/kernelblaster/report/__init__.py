"""The static, self-contained HTML page of a run. Reads what the run wrote; computes nothing that was not recorded."""
