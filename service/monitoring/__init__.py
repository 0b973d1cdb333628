"""One round: facts, posteriors, a snapshot, and label requests."""
