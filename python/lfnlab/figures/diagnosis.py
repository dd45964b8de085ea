"""The page of ``lfn diagnose``: what limited a transfer over time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from lfnlab.diagnose import result
from lfnlab.diagnose.names import CAUSES, UNDECIDED
from lfnlab.html import asset, elements, head, table
from lfnlab.printable import line
from lfnlab.results.output import MARK

if TYPE_CHECKING:
    from lfnlab.advise import Remedies
    from lfnlab.diagnose.cells import Cells
    from lfnlab.diagnose.evidence import Floats
    from lfnlab.diagnose.result import Examination

# Paul Tol's muted scheme and an orange: told apart with any colour vision. Each has letters, too.
_LOOKS = dict(
    zip(
        (*CAUSES, UNDECIDED),
        (
            ("#88ccee", "RW"),
            ("#44aa99", "SB"),
            ("#cc6677", "RL"),
            ("#882255", "QO"),
            ("#aa4499", "PO"),
            ("#ddcc77", "PA"),
            ("#999933", "AP"),
            ("#117733", "SS"),
            ("#332288", "AC"),
            ("#ee7733", "PC"),
            ("#bbbbbb", "?"),
        ),
        strict=True,
    )
)
_DARK = ("#882255", "#aa4499", "#117733", "#332288")
"""Grounds of white letters."""
_LEAST_LETTERS = 0.04
"""Part of the width in which letters have room."""
_MOST_ROWS = 200


def page(found: Examination, remedies: Remedies | None = None) -> str:
    """The page of an examination, with what other settings would give."""
    own = found.main.diagnosis
    title = "What limited the transfer"
    body = [
        f"<h1>{title}</h1>",
        f'<p class="verdict"><strong>{_text(result.heading(found))}.</strong> '
        f'<span class="{"holds" if found.certain else "open"}">'
        f"{'certain' if found.certain else 'not certain'}</span></p>",
        f"<p>{_text(own.why)}.</p>",
        *(f"<p>But {_text(doubt)}.</p>" for doubt in own.doubts),
    ]
    if found.next:
        command, _, why = found.next.partition("  ")
        body.append(f"<p>Measure next: <code>{_text(command)}</code> {_text(why.strip('()'))}.</p>")
    body += [_strip(found), _causes(found)]
    charts = list(_charts(found))
    body.append("<h2>Over time</h2>")
    for chart in charts:
        names = "; ".join(series["label"] for series in chart["series"])
        body.append(
            f'<div class="chart"><h3>{_text(chart["title"])}</h3>'
            f'<div id="{chart["id"]}" role="img" aria-label="'
            f'{_text(chart["title"])} over time: {_text(names)}"></div>'
            '<ul class="legend"></ul></div>'
        )
    body += [
        '<p class="dim on-screen">The ground has the colour of the cause. Drag to zoom in time; '
        "double-click shows all again.</p>",
        "<h2>Intervals</h2>",
        _intervals(found),
        *_path(found),
        *_remedies(remedies),
        *_flows(found),
        "<h2>Evidence</h2>",
        _files(found),
        *(f'<p class="dim">{_text(note)}</p>' for note in found.notes),
    ]
    style = asset(__package__, "diagnosis.css").decode()
    scripts = [asset(__package__, "diagnosis.js").decode()]
    data = json.dumps(charts, separators=(",", ":")).replace("<", "\\u003c")
    return "\n".join(
        [
            f"{head(title, style, scripts=scripts)}\n<!-- {MARK} -->\n<body>",
            *body,
            f'<script type="application/json" id="diagnosed">{data}</script>',
            elements(scripts),
            "</body>\n</html>\n",
        ]
    )


def _text(value: object) -> str:
    return escape(line(value))


def _look(cause: str) -> str:
    color, _ = _LOOKS[cause]
    return f"background: {color}; color: {'#ffffff' if color in _DARK else '#000000'}"


def _chip(cause: str) -> str:
    return f'<span class="chip" style="{_look(cause)}">{_LOOKS[cause][1]}</span>'


def _strip(found: Examination) -> str:
    """The time line."""
    own = found.main.diagnosis
    parts = [
        f'<span style="width: {100 * one.share:.3f}%; {_look(one.cause)}" '
        f'title="{_text(one.cause)}, {one.start_s:.2f} to {one.end_s:.2f} s">'
        f"{_LOOKS[one.cause][1] if one.share >= _LEAST_LETTERS else ''}</span>"
        for one in own.intervals
    ]
    said = ", ".join(f"{cause} {share:.0%}" for cause, share in own.shares.items())
    first, last = own.intervals[0].start_s, own.intervals[-1].end_s
    return (
        f'<div class="strip" role="img" aria-label="causes over time: {_text(said)}">'
        f'{"".join(parts)}</div><p class="dim ends"><span>{first:.2f} s</span>'
        f"<span>{last:.2f} s</span></p>"
    )


def _causes(found: Examination) -> str:
    shares = found.main.diagnosis.shares
    items = [
        f"<li>{_chip(cause)}{_text(cause)} {share:.0%}</li>" for cause, share in shares.items()
    ]
    return f'<ul class="causes">{"".join(items)}</ul>'


def _charts(found: Examination) -> Iterator[dict[str, Any]]:
    """Rate, RTT, windows and bytes in flight, at the middle of each cell."""
    own = found.main.diagnosis
    cells = own.cells
    assert cells is not None
    bands = [
        {"from": one.start_s, "to": one.end_s, "color": _LOOKS[one.cause][0]}
        for one in own.intervals
    ]
    times = _short((cells.edges_s[1:] + cells.edges_s[:-1]) / 2)
    kind = "" if cells.has_flight else " (goodput times RTT)"
    for name, title, series in (
        ("rate", "Goodput (Mbit/s)", [("goodput", cells.rate_bps / 1e6)]),
        ("rtt", "RTT (ms)", [("RTT", cells.rtt_s * 1e3)]),
        ("window", f"Windows{_off(cells)} (kB)", _windows(cells)),
        ("flight", f"Bytes in flight{kind} (kB)", [("in flight", cells.flight_bytes / 1e3)]),
        ("lost", "Retransmits", [("segments sent again", cells.retransmits)]),
    ):
        known = [(label, values) for label, values in series if np.isfinite(values).any()]
        if known:
            yield {
                "id": f"chart-{name}",
                "title": title,
                "t": times,
                "bands": bands,
                "spans": True,
                "series": [
                    {"label": label, "color": None, "dash": dash, "y": _short(values)}
                    for (label, values), dash in zip(known, ([], [6, 3]), strict=False)
                ],
            }


def _is_off(cells: Cells) -> bool:
    """Whether the receiver's window is far above what is sent: it would flatten the rest."""
    most = np.nanmax(np.concatenate([cells.flight_high_bytes, cells.cwnd_bytes, [0.0]]))
    return bool(
        np.isfinite(cells.window_bytes).any() and np.nanmedian(cells.window_bytes) > 4 * most > 0
    )


def _off(cells: Cells) -> str:
    if not _is_off(cells):
        return ""
    return f"; the receiver's has {np.nanmedian(cells.window_bytes) / 1e3:,.0f} kB, far above"


def _windows(cells: Cells) -> list[tuple[str, Floats]]:
    shown = [("congestion window", cells.cwnd_bytes / 1e3)]
    if not _is_off(cells):
        shown.append(("receiver's window", cells.window_bytes / 1e3))
    return shown


def _short(values: Floats) -> list[float | None]:
    return [None if not np.isfinite(v) else float(f"{v:.5g}") for v in values.tolist()]


def _intervals(found: Examination) -> str:
    own = found.main.diagnosis.intervals
    rows = [
        f"<td>{one.start_s:.2f} to {one.end_s:.2f}</td><td>{one.share:.0%}</td>"
        f'<td class="text">{_chip(one.cause)}{_text(one.cause)}</td>'
        f'<td class="prose">{_text(one.evidence)}</td>'
        for one in own[:_MOST_ROWS]
    ]
    headings = [("time (s)", False), ("share", False), ("cause", True), ("evidence", True)]
    more = f'<p class="dim">{len(own) - len(rows):,} more in <code>--json</code>.</p>'
    return table(headings, rows) + (more if len(rows) < len(own) else "")


def _path(found: Examination) -> Iterator[str]:
    if found.fit is None:
        return
    rows = []
    for said in result.path_lines(found.fit):
        name, value, how = said.removeprefix("path, ").split(": ", 2)
        rows.append(
            f'<td class="text">{_text(name)}</td><td class="text">{_text(value)}</td>'
            f'<td class="prose">{_text(how)}</td>'
        )
    yield "<h2>The path</h2>"
    if found.cause in result.OF_HOSTS:
        yield "<p>The path's rate does not show: it is at least the goodput.</p>"
    if found.law is not None:
        rows.append(
            f'<td class="text">law</td><td class="text">'
            f"{_text(' or '.join(found.law.first) or 'none')}</td>"
            f'<td class="prose">{_text(result.law_line(found.law))}</td>'
        )
    yield table([("quantity", True), ("value", True), ("how", True)], rows)


def _remedies(found: Remedies | None) -> Iterator[str]:
    if found is None or not found.ranked:
        return
    rows = [
        f'<td class="text">{_text(one.change.name)}</td><td>{one.gain:.2f}</td>'
        f"<td>{min(one.gains):.2f} to {max(one.gains):.2f}</td>"
        f"<td>{float(np.median(one.goodputs_bps)) / 1e6:.4g}</td>"
        f'<td class="text">{"<br>".join(f"<code>{_text(x)}</code>" for x in one.change.type_)}</td>'
        for one in found.ranked
    ]
    headings = [("change", True), ("times the goodput", False), ("range", False)]
    number = len(found.now_bps)
    paths = "1 path" if number == 1 else f"{number} paths"
    yield "<h2>Other settings, simulated</h2>"
    yield f"<p>On {paths} within these bounds. Nothing is applied.</p>"
    yield table([*headings, ("Mbit/s", False), ("to type, as root", True)], rows)


def _flows(found: Examination) -> Iterator[str]:
    if len(found.flows) < 2:
        return
    rows = [
        f"<td>{one.transfer.shown.flow['id']}</td>"
        f'<td class="text">{_text(one.transfer.shown.flow["direction"])}</td>'
        f"<td>{one.bytes / 1e6:.4g}</td>"
        f'<td class="text">{_chip(one.diagnosis.cause)}{_text(one.diagnosis.cause)}</td>'
        f'<td class="text">{"yes" if one.diagnosis.certain else "no"}</td>'
        for one in found.flows
    ]
    headings = [("flow", False), ("direction", True), ("MB", False), ("cause", True)]
    yield "<h2>Flows</h2>"
    yield table([*headings, ("certain", True)], rows)


def _files(found: Examination) -> str:
    told: dict[str, list[str]] = {}
    for words, kind in found.main.transfer.told_by.items():
        told.setdefault(kind, []).append(words)
    rows = [
        f'<td class="text">{_text(label)}</td><td class="text">{source.kind}</td>'
        f'<td class="prose">{_text(", ".join(told.get(source.kind, ["nothing more"])))}</td>'
        for label, source in zip(found.labels, found.sources, strict=True)
    ]
    return table([("file", True), ("kind", True), ("tells", True)], rows)
