"""Noticing that a run no longer comes closer, and what is done about it."""
