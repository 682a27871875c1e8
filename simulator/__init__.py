"""The simulator: synthetic users and real mechanisms, to find out what would be learned from a collection."""
