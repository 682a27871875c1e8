"""What several oracles share: their state, and the class of all sketches of teams."""
