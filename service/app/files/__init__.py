"""Predictions and labels of a file, row by row: read, made into messages of the contract, sent."""
