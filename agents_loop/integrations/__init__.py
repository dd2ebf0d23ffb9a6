"""Agents and chat clients of other frameworks, each in a module of its own; importing one loads no SDK."""
