"""`python -m headway.sim`: the simulated server without the rest of the command line."""

from __future__ import annotations

import sys

from headway.sim.process import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
