"""Files of our own format: one loop, with all that its evaluators and its options can say in a file."""
