"""Chat clients of the model providers, one SDK a file."""
