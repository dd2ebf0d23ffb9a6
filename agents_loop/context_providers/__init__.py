"""What an agent is given for a run beyond the caller's messages: the interface, and one file a provider."""
