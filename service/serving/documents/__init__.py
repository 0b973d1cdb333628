"""What people are told of a model: documents made from snapshots, for page, API and terminal."""
