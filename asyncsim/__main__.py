"""``python -m asyncsim``: the same as the command ``asyncsim``."""

from asyncsim.cli.main import main

if __name__ == "__main__":
    main(prog_name="asyncsim")
