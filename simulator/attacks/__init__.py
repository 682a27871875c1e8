"""What can be done against the protocol: users who send chosen reports, and observers who link reports."""
