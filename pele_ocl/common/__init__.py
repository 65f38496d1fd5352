"""Common utilities: errors, argument checks, text files and other helpers."""
