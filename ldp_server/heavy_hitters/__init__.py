"""Lists of popular items out of sketches of domains far too large to list."""
