"""Commands about several fields of records at once."""
