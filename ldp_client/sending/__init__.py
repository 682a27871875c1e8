"""Sending: the outbox, the background sender, the transports, and the subscription to the signed list."""
