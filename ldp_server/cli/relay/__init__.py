"""The commands of a relay: relay serve | check | status | config. They need neither numpy nor the collection server."""
