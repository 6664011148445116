"""Input values: how they are drawn, perturbed between timed calls, and laid in files."""
