"""Search in several processes: batches, subtrees, the journal of an exploration."""
