"""``python -m asyncsim``: the same as the command ``asyncsim``."""

from asyncsim.cli.process import run

if __name__ == "__main__":
    run()
