"""Commands for a store that several servers share."""
