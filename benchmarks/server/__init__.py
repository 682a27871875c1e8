"""The collection server, measured over its own wire; the load and a bare yardstick run in processes of their own."""
