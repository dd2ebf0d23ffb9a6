"""Several candidates at once, of which one is kept: of an iteration, or of a whole loop."""
