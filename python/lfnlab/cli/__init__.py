"""The command ``lfn``: a module for each group of commands, and :mod:`lfnlab.cli.app`."""


def main() -> None:
    """Run ``lfn``: what a shell calls."""
    from lfnlab.cli import app

    app.main()
