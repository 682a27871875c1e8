"""`python -m ldp_client.cli` is `ldp-client`."""

import sys

from ldp_client.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
