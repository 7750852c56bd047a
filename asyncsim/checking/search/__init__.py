"""Many schedules of one case: sampled, or one of each class of equivalent ones, each analysed for races."""
