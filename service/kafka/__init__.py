"""Kafka clients, logins, topic metadata and the translation of client errors."""
