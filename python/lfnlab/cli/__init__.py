"""The command ``lfn``: a module for each group of commands, and :mod:`lfnlab.cli.app`."""


def main() -> None:
    """Run ``lfn``: what a shell calls."""
    import sys

    if sys.argv[1:] == ["--version"]:
        # The parser of commands takes ten times as long.
        from lfnlab.results.provenance import code_version

        print(code_version())
        return
    from lfnlab.cli import app

    app.main()
