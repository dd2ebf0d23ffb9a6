"""Placeholder until the public names are complete."""
