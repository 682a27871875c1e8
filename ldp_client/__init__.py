"""Hearsay's client: randomizes one user's item on the device, so that no server ever holds it."""
