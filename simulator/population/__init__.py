"""Who holds what: synthetic users and the items behind their ranks."""
