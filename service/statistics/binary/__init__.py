"""Performance of binary classifiers, from the scores of one class and few labels."""
