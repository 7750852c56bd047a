"""Judge a kernel: its runs recorded, what they show diagnosed, schedules searched, witnesses made, a verdict given."""
