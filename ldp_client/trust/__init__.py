"""Trust: the app's policy and the signed list of collections."""
