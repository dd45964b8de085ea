"""The frame of HTML pages: head, styles, scripts. A page asks nothing of the network."""

from __future__ import annotations

from importlib import resources


def head(title: str, *styles: str) -> str:
    """The page up to its body; ``title`` is HTML."""
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            # An empty icon keeps the browser from asking for one.
            '<link rel="icon" href="data:,">',
            f"<title>{title}</title>",
            f"<style>{''.join(map(asset, ('uPlot.min.css', *styles)))}</style>\n</head>",
        ]
    )


def scripts(*names: str) -> str:
    """Charts, and then these scripts."""
    licensed = f"<script>/* {asset('uPlot.LICENSE')} */\n{asset('uPlot.iife.min.js')}</script>"
    return "\n".join(
        [licensed, *(f"<script>{asset(name)}</script>" for name in ("chart.js", *names))]
    )


def asset(name: str) -> str:
    """The text of a file of this package."""
    return asset_bytes(name).decode()


def asset_bytes(name: str) -> bytes:
    """A file of this package."""
    return resources.files(__package__).joinpath("assets", name).read_bytes()
