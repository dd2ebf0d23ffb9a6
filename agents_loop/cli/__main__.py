"""`python -m agents_loop.cli`, for where the command itself is not on the path."""

import sys

from agents_loop.cli import main

sys.exit(main())
