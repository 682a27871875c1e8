"""The randomizers for records over arrays: each draws the same fields as the client's on the same words."""
