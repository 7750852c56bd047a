"""Dialects: programs written for other systems, run on the simulated machine as they are."""
