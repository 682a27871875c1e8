"""The exact laws of counts, and the intervals that follow from them."""
