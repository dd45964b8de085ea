"""The command ``lfn``: a module for each group of commands, and :mod:`lfnlab.cli.app`."""


def main() -> None:
    """Run ``lfn``: what a shell calls."""
    import gc
    import sys

    from lfnlab.cli import ends

    ends.prepare()
    words = sys.argv[1:]
    # To import the parser of commands takes five times as long as to start Python.
    if words == ["--version"]:
        code = ends.code_of(_version, words)
    elif words in ([], ["--help"], ["-h"]):
        from lfnlab.cli import page

        code = ends.code_of(page.show, words)
    elif words == ["laws"]:
        from lfnlab.cli import listing

        code = ends.code_of(listing.laws, words)
    else:
        from lfnlab.cli import app

        code = app.call(words)
    # The process ends: nothing of what it holds is to be searched for cycles.
    gc.freeze()
    sys.exit(code)


def _version() -> None:
    from lfnlab.results.provenance import code_version

    print(code_version())
