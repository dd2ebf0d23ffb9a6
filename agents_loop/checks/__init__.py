"""Deterministic checks: evaluators that code decides."""
