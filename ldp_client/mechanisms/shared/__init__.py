"""What several mechanisms share: pair laws for a relay, and the class of all sketches of teams."""
