"""The vendor API: label requests for those without Kafka, claimed and answered over HTTP."""
