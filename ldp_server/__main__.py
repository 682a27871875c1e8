"""`python -m ldp_server` is `ldp-server`."""

from ldp_server.cli import main

if __name__ == "__main__":
    main()
