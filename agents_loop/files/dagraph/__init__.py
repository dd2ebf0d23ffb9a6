"""Files in dagraph's format."""
