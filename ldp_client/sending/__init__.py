"""Reports on their way: the outbox, the background sender, and the transports."""
