"""An agent and an evaluator that are a prompt each, rendered anew in each iteration."""
