"""Show it: reports in words."""
