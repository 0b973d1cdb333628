"""The ingestion API: predictions over HTTP, for models without Kafka."""
