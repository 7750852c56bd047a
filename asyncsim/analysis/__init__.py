"""What must be true: from the events of one run, what every schedule can and cannot do."""
