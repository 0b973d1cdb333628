"""Error rates of every group for one class against the rest, with evidence for limits and gaps."""
