"""Which atoms and which structures a command takes."""
