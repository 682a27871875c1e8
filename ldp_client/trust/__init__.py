"""What this device believes: the app's policy, and the signed list of collections."""
