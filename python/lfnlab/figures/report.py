"""One HTML page that holds an experiment: opens from a file, asks nothing of the network."""

from __future__ import annotations

import itertools
import json
import re
import tempfile
from contextlib import contextmanager
from html import escape
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np

from lfnlab.analysis import advice
from lfnlab.analysis.summary import averaged, rate_unit, summary_tables
from lfnlab.errors import StoreError
from lfnlab.figures import plot, registry
from lfnlab.figures.looks import Look, looks
from lfnlab.results.integrity import provenance_of
from lfnlab.results.runs import origin, route
from lfnlab.results.store import read_text, replace_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from lfnlab.analysis.finding import Finding
    from lfnlab.analysis.table import Table
    from lfnlab.results.runs import Results, Run

BUCKETS = 1000
_MOST_TRACES = 12
_CHANGES = " A dotted line stands where the scenario changes a link or a route."

# Shown on the page as interactive charts instead.
_TRACES = {
    entry.caption for entry in registry.FIGURES.values() if isinstance(entry, registry.Traces)
}


def write_report(
    results: Results,
    *,
    out: Path | None = None,
    findings: Sequence[Finding] = (),
    figures: Mapping[str, tuple[Figure, str]] | None = None,
    tables: Mapping[str, Table] | None = None,
    traced: Sequence[Run] | None = None,
    files: bool = False,
    seen: str = "",
) -> Path:
    """Write ``report.html`` into the results directory.

    Args:
        results: the experiment.
        out: another directory to write them to.
        findings: verdicts on claims, shown first.
        figures: figures and their captions by file name, instead of the house's own; each is a
            file ``figures/NAME.png`` and ``.pdf`` too.
        tables: further tables by their headings.
        traced: the runs whose traces are shown; default the first seed of some cases.
        files: write the house's figures to ``figures`` too, those of the traces among them.
        seen: sentences on what the results show.

    Returns:
        The path of the page.

    Raises:
        StoreError: when a run is damaged, or nothing can be written there.
    """
    home = results.root if out is None else out
    with _writing(results, home):
        home.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=home).close()
    traced = plot.some(plot.first_seed(results), _MOST_TRACES) if traced is None else traced
    if figures is None:
        own = registry.of_report(results, traced, with_traces=files)
        figures, on_page = own, {*own} - _TRACES
    else:
        files, on_page = True, {*figures}
    shown = {}
    made: dict[str, bytes] = {}
    for name, (figure, caption) in figures.items():
        kinds = [*(("png", "pdf") if files else ()), *(("svg",) if name in on_page else ())]
        for kind, data in plot.rendered(figure, kinds, origin=origin(results.runs)).items():
            if kind == "svg":
                shown[caption] = data.decode()
            else:
                made[f"figures/{name}.{kind}"] = data
    page = _page(results, findings, shown, tables or {}, _charts(traced), seen)
    with _writing(results, home):
        for file, data in made.items():
            replace_file(home / file, data)
        return replace_file(home / "report.html", page)


@contextmanager
def _writing(results: Results, home: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"cannot write the report to {home}: {error.strerror}; "
            f"lfn report {results.root} --out DIR writes it elsewhere"
        ) from None


def _page(
    results: Results,
    findings: Sequence[Finding],
    figures: Mapping[str, str],
    tables: Mapping[str, Table],
    charts: Sequence[Mapping[str, Any]],
    seen: str,
) -> str:
    title = escape(results.title or "lfnlab results")
    body = [f"<h1>{title}</h1>", f'<p class="dim">{_subtitle(results)}</p>']
    if seen:
        body.append(f"<p>{escape(seen)}</p>")
    if findings:
        body += ["<h2>Claims</h2>", _findings(findings)]
    body += [
        "<h2>Summary</h2>",
        *(_table(table) for table in summary_tables(results)),
        f'<p class="dim">{escape(_note(results))}</p>',
    ]
    body.append('<div class="figures">')
    body += [
        f'<figure><div class="scroll" tabindex="0" role="region" aria-label="figure">'
        f"{_inline(svg, caption)}</div>"
        f"<figcaption>{escape(caption)}</figcaption></figure>"
        for caption, svg in figures.items()
    ]
    body.append("</div>")
    for heading, table in tables.items():
        body += [f"<h2>{escape(heading)}</h2>", _table(table)]
    if charts:
        body.append("<h2>Traces</h2>")
        body.append(
            '<p class="dim">Drag to zoom in time; double-click shows all again. A name hides its '
            "trace and shows it again. The trace next to the pointer stands out. "
            "Thinned for display: each pair of points is the smallest and the largest value of "
            "its interval. The tables hold every sample. Goodput counts what is released in order "
            "when a loss is repaired in the bin of its release, which can exceed the link's rate."
            f"{_shown(results)}"
            f"{_CHANGES if any(chart['changes'] for chart in charts) else ''}</p>"
        )
        body += [
            f'<div class="chart"><h3>{escape(chart["title"])}</h3>'
            f'<div id="{chart["id"]}"></div><ul class="legend"></ul></div>'
            for chart in charts
        ]
    body += [
        "<h2>Scenario</h2>",
        _scenarios(results),
        "<h2>Runs</h2>",
        _runs(results),
        _provenance(results),
    ]
    data = json.dumps(charts, separators=(",", ":")).replace("<", "\\u003c")
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            # An empty icon keeps the browser from asking for one.
            '<link rel="icon" href="data:,">',
            f"<title>{title}</title>",
            f"<style>{_asset('uPlot.min.css')}{_asset('report.css')}</style>\n</head>\n<body>",
            *body,
            f'<script type="application/json" id="charts">{data}</script>',
            f"<script>/* {_asset('uPlot.LICENSE')} */\n{_asset('uPlot.iife.min.js')}</script>",
            f"<script>{_asset('report.js')}</script>\n</body>\n</html>\n",
        ]
    )


def _shown(results: Results) -> str:
    """Which of the runs have traces, where not all have."""
    cases = len(plot.first_seed(results))
    some = f"{_MOST_TRACES} of {cases} cases, " if cases > _MOST_TRACES else ""
    return f" Shown: {some}the first seed of each." if cases < len(results.runs) or some else ""


def _subtitle(results: Results) -> str:
    run = results.runs[0]
    links = run.summary["links"][: 1 if run.is_dumbbell else None]
    rates_bps = sorted({link["rate_bps"] for link in links})
    rtts = sorted({flow["rtt_s"] for r in results.runs for flow in r.summary["flows"]})
    rtt = " to ".join(f"{rtt * 1e3:g}" for rtt in sorted({*rtts[:1], *rtts[-1:]}))
    unit, unit_bps = rate_unit(rates_bps[-1])
    rate = " to ".join(f"{bps / unit_bps:g}" for bps in sorted({rates_bps[0], rates_bps[-1]}))
    where = "on a test bed" if "testbed" in run.summary else "simulated"
    return ", ".join(
        [
            f"{rate} {unit}",
            f"base RTT {rtt} ms" if rtts else "background traffic only",
            f"{run.summary['sim_s']:g} s {where}",
            _count(results.runs, "run"),
        ]
    )


def _count(items: Sequence[object], noun: str) -> str:
    return f"{len(items)} {noun}{'' if len(items) == 1 else 's'}"


def _note(results: Results) -> str:
    return " ".join([f"Averages {averaged(results)}.", *advice.seen(results)])


def _table(table: Table) -> str:
    column = table.headings.index("law") if "law" in table.headings else None
    names = {} if column is None else {row[column]: row[column] for row in table.rows}
    swatches = {name: _swatch(style) for name, style in looks(names).items()}

    def cell(row: Sequence[str], i: int) -> str:
        if i >= table.keys:
            return f"<td>{escape(row[i])}</td>"
        swatch = swatches.get(row[i], "") if table.headings[i] == "law" else ""
        return f'<td class="text">{swatch}{escape(row[i])}</td>'

    return _html_table(
        [(heading, i < table.keys) for i, heading in enumerate(table.headings)],
        ["".join(cell(row, i) for i in range(len(row))) for row in table.rows],
    )


def _swatch(style: Look) -> str:
    """A piece of the line that a law has in the figures: its colour and its dashes."""
    dashes = " ".join(f"{1.5 * length:g}" for length in style.dashes)
    return (
        '<svg class="swatch" viewBox="0 0 30 4" aria-hidden="true"><path d="M0 2H30" '
        f'stroke="{style.color}" stroke-width="2.5" stroke-dasharray="{dashes or "none"}"/></svg>'
    )


def _html_table(
    headings: Sequence[tuple[str, bool]], rows: Sequence[str], classes: str = "data"
) -> str:
    head = "".join(
        f'<th scope="col"{" class=text" if text else ""}>{escape(heading)}</th>'
        for heading, text in headings
    )
    body = "\n".join(f"<tr>{row}</tr>" for row in rows)
    return (
        '<div class="scroll" tabindex="0" role="region" aria-label="table">'
        f'<table class="{classes}"><thead><tr>{head}</tr></thead>\n'
        f"<tbody>{body}</tbody></table></div>"
    )


def _findings(findings: Sequence[Finding]) -> str:
    classes = {"holds": "holds", "does not hold": "fails"}
    rows = [
        f'<td class="text">{escape(f.claim)}</td>'
        f'<td class="prose">{escape(f.says)} <span class="dim">({escape(f.where)})</span></td>'
        f'<td class="prose">{escape(f.ours)}</td>'
        f'<td class="text {classes.get(f.verdict, "open")}">{escape(f.verdict)}</td>'
        f'<td class="prose">{escape(f.cause)}</td>'
        for f in findings
    ]
    headings = ["claim", "the paper", "ours", "verdict", "cause"]
    return _html_table([(heading, True) for heading in headings], rows, "data claims")


def _scenarios(results: Results) -> str:
    parts = []
    cases = plot.first_seed(results)
    if len(cases) > 1:
        varied = ", ".join(results.runs[0].factors)
        parts.append(f"<p>The runs differ in {escape(varied)} and seed. The first:</p>")
    text = read_text(cases[0].path / "scenario.toml")
    parts.append(f"<pre>{escape(text)}</pre>")
    return "\n".join(parts)


def _runs(results: Results) -> str:
    rows = [
        f'<td class="text">{escape(plot.panel_title(run))}</td><td>{run.seed}</td>'
        f'<td class="text"><code>{escape(run.summary["hash"])}</code></td>'
        f"<td>{run.summary['data_packets_delivered']:,}</td><td>{run.summary['wall_s']:.2f}</td>"
        f'<td class="text"><code>runs/{escape(run.path.name)}</code></td>'
        for run in results.runs
    ]
    headings = [
        ("run", True),
        ("seed", False),
        ("hash of the result", True),
        ("data packets", False),
        ("wall time (s)", False),
        ("directory", True),
    ]
    summary = f"{_count(rows, 'run')} and where the tables are"
    return f"<details><summary>{summary}</summary>{_html_table(headings, rows)}</details>"


def _provenance(results: Results) -> str:
    seen = {
        f"lfnlab {p['code']}, Python {p['python']}, {p['system']}"
        for p in (provenance_of(run.path) for run in results.runs)
    }
    return "".join(f'<p class="dim">Made by {escape(line)}.</p>' for line in sorted(seen))


def _inline(svg: str, label: str) -> str:
    """The figure for the page: its ink is the page's, for dark and light; its width a limit."""
    svg = svg[svg.index("<svg") :].replace(plot.INK, "currentColor")
    width = re.search(r'width="([\d.]+pt)"', svg)
    natural = f' style="--natural: {width[1]}"' if width else ""
    return svg.replace("<svg", f'<svg role="img" aria-label="{escape(label)}"{natural}', 1)


def _charts(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Data for report.js: traces on one common time axis for each quantity."""
    kinds = (
        ("cwnd", "Congestion window (segments)", plot.cwnd_series),
        ("rate", "Goodput in 1-s bins (Mbit/s)", plot.goodput_series),
        ("queue", "Queue (packets)", plot.queue_series),
    )
    each = max(1, _MOST_TRACES // max(1, len(runs)))
    changes = sorted({at_s for run in runs for at_s in plot.changes_s(run)})
    charts = []
    for name, title, series in kinds:
        found = [(run, list(series(run))) for run in runs]
        labelled = [
            pair
            for run, traces in found
            for pair in _labelled(run, traces, each, of_links=name == "queue")
        ]
        if labelled:
            most = max(len(traces) for _, traces in found)
            what = "links" if name == "queue" else "flows"
            shown = f", {each} of {most} {what} of a run" if most > each else ""
            chart = {"id": f"chart-{name}", "title": title + shown, "changes": changes}
            charts.append({**chart, **_aligned(labelled)})
    return charts


def _labelled(
    run: Run, traces: Sequence[plot.Series], most: int, *, of_links: bool
) -> Iterator[tuple[str, plot.Series]]:
    flows = run.summary["flows"]
    ways = {flow["id"]: route(flow) for flow in flows} if len(flows) > 1 else {}
    for trace in plot.some(traces, most):
        number, law = trace[:2]
        title = plot.panel_title(run, law)
        if of_links and (len(traces) > 1 or not run.is_dumbbell):
            title += f", {run.summary['links'][number]['id']}"
        elif not of_links and ways:
            title += f" #{number}{f', {ways[number]}' if len(set(ways.values())) > 1 else ''}"
        yield title, trace


def _aligned(labelled: Sequence[tuple[str, plot.Series]]) -> dict[str, Any]:
    """Traces on common times: each bucket gives its smallest and largest value, in their order."""
    every = np.unique(np.concatenate([t for _, (_, _, t, _) in labelled]).round(9))
    if every.size <= 2 * BUCKETS:
        t = every
        values = [_on_grid(every, *trace[2:]) for _, trace in labelled]
    else:
        edges = np.linspace(every[0], every[-1], BUCKETS + 1)
        t = np.repeat(edges[:-1], 2) + np.tile([0.25, 0.75], BUCKETS) * (edges[1] - edges[0])
        values = [_extremes(edges, *trace[2:]) for _, trace in labelled]
    # Names may be equal, as those of flows of prototypes: a look for each place.
    styles = looks({i: name or None for i, (_, (_, name, _, _)) in enumerate(labelled)})
    series = []
    for i, ((label, (_, name, _, _)), y) in enumerate(zip(labelled, values, strict=True)):
        known = [None if np.isnan(v) else float(f"{v:.5g}") for v in y]
        alone = not name and len(labelled) == 1
        series.append(
            {
                "label": label,
                "color": None if alone else styles[i].color,
                "dash": [round(1.5 * length, 1) for length in styles[i].dashes],
                "y": known,
            }
        )
    return {"t": [float(f"{v:.6g}") for v in t], "series": series}


def _on_grid(
    grid: NDArray[np.float64], t: NDArray[np.float64], y: NDArray[np.float64]
) -> NDArray[np.float64]:
    values = np.full(grid.size, np.nan)
    values[np.searchsorted(grid, t.round(9))] = y
    return values


def _extremes(
    edges: NDArray[np.float64], t: NDArray[np.float64], y: NDArray[np.float64]
) -> NDArray[np.float64]:
    values = np.full((edges.size - 1, 2), np.nan)
    bounds = np.searchsorted(t, edges)
    bounds[-1] = t.size
    for i, (first, last) in enumerate(itertools.pairwise(bounds)):
        if last > first:
            low, high = first + int(np.argmin(y[first:last])), first + int(np.argmax(y[first:last]))
            values[i] = y[min(low, high)], y[max(low, high)]
    return values.reshape(-1)


def _asset(name: str) -> str:
    return resources.files(__package__).joinpath("assets", name).read_text(encoding="utf-8")
