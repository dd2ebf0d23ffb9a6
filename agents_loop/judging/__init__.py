"""What judges share: the verdict, the prompt with its fences, the reading of a reply."""
