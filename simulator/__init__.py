"""The simulator: synthetic users and real mechanisms, to find out what a collection would teach."""
