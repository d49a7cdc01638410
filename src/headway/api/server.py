"""The life of a server process: start its parts in order, serve, and stop them in reverse."""
