"""The evaluators, one file each."""
