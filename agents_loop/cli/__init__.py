"""The command agents-loop."""
