"""Hearsay's server: takes reports, keeps them durably, turns them into estimates. It never sees an item."""
