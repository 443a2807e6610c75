"""The command `cinch` of the wheel: `python -m cinch` and the script that pip installs."""
import os
import sys

from ._library import PACKAGE


def main() -> None:
    """Becomes the command that the package holds; exits with status 3 where there is none."""
    command = PACKAGE / "bin" / "cinch"
    if not command.exists():
        sys.stderr.write(f"error: {command} does not exist: this package was not installed from a wheel\n")
        sys.exit(3)
    os.execv(command, ["cinch", *sys.argv[1:]])


if __name__ == "__main__":
    main()
