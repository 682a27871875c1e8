"""The audit of privacy, and clients that leak on purpose, which the audit must find."""
