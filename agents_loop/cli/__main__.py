"""`python -m agents_loop.cli`, for where the command itself is not on the path."""

import sys

try:
    from agents_loop.cli import main
except KeyboardInterrupt:
    sys.exit(130)

sys.exit(main())
