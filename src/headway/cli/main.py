"""Entry point of the `headway` command.

Nothing is loaded outside `main`: most of a short command's life is loading modules, and Ctrl-C
has to end it there as it does later, with a word and a code and no traceback.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line, and end with its exit code."""
    try:
        from headway.cli.interrupts import deferred_interrupt

        with deferred_interrupt():
            from headway.cli.commands import run
        code = run()
    except KeyboardInterrupt:
        from headway.cli.exit_codes import ExitCode

        sys.stderr.write("\nInterrupted.\n")  # On a line of its own, after the ^C of the terminal.
        code = ExitCode.INTERRUPTED
    sys.exit(code)


if __name__ == "__main__":
    main()
