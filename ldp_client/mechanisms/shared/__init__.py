"""What several mechanisms share: pair laws for a relay, favoured sets, and the class of all sketches of teams."""
