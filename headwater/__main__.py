"""`python -m headwater`: the command line."""

import sys

from headwater.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
