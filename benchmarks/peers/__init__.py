"""Other libraries, installed in an environment of their own, measured beside ours."""
