"""The words, and what happened: declarations, regions, operations, events, findings, files."""
