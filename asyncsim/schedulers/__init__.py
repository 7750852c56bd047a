"""Who goes next: one small file a scheduler, and the table of their names."""
