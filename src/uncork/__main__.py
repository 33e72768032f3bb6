"""Run the command line: ``python -m uncork``."""

import sys

from uncork.cli import main

if __name__ == "__main__":
    sys.exit(main())
