"""Commands for exported files, which need no server."""
