"""The coverage of the intervals that answers state, as a benchmark."""
