"""From Kafka into facts: one loop owns the client, steps see only records."""
