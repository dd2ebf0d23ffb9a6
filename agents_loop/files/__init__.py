"""Loops as files: schema, loading, building."""
