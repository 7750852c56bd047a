"""What one run shows by itself: wrong results, hangs, credits that are never used; in words."""
