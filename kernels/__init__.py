"""The exhibits: one file per algorithm, the correct kernel first, its known-bad variants under it."""
