"""Who sent it: what hides the sender costs, and what it hides."""
