"""The loop: its engine, its agent, and the words around them."""
