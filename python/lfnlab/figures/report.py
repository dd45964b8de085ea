"""One HTML page that holds an experiment: opens from a file, asks nothing of the network."""

from __future__ import annotations

import os
import re
import shlex
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

from lfnlab.analysis import differences, warnings
from lfnlab.analysis import table as written
from lfnlab.analysis.summary import averages, rate_unit, summary_tables
from lfnlab.control_laws.registry import known
from lfnlab.errors import StoreError, UsageError
from lfnlab.figures import plot, registry, views
from lfnlab.figures.looks import Look, looks
from lfnlab.figures.markdown import as_html
from lfnlab.figures.spread import GROUND
from lfnlab.html import asset, elements, head
from lfnlab.html import table as html_table
from lfnlab.laboratory import page as laboratory
from lfnlab.results import output, remote
from lfnlab.results.integrity import provenance_of
from lfnlab.results.runs import origin
from lfnlab.results.store import check_layout, read_text, replace_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from lfnlab.analysis.finding import Finding
    from lfnlab.analysis.table import Table
    from lfnlab.figures.views import Views
    from lfnlab.results.cases import Group
    from lfnlab.results.runs import Results, Run

DATA_BYTES = 100_000
"""Of a figure's numbers on the page; beyond it the page names the command that prints them."""
_MANY_ROWS = 40
"""Beyond them the rows of the summary stand behind the figures."""
_MOST_RUNS = 1000
"""Runs that the page lists."""
_LINK_CHARACTERS = 100_000
"""Of all links to the laboratory on the page."""
_CHANGES = " A dotted line stands where the scenario changes a link or a route."


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
    notes: Sequence[str] | None = None,
    step: Callable[[], object] = bool,
) -> Path:
    """Write ``report.html`` into the results directory.

    Args:
        results: the experiment.
        out: another directory to write them to.
        findings: verdicts on claims, shown first.
        figures: figures and their captions by file name, instead of the house's own; each is a
            file ``figures/NAME.png`` and ``.pdf`` too.
        tables: further tables by their headings.
        traced: the runs whose traces are shown beside each other; default the first seed of some
            cases. Those of each case alone are there as far as they fit.
        files: write the house's figures to ``figures`` too, those of the traces among them.
        seen: sentences on what the results show.
        notes: what :func:`lfnlab.analysis.warnings.seen` says of them, if it is known.
        step: called once for each run, and once more if the notes are not known.

    Returns:
        The path of the page.

    Raises:
        StoreError: when a run is damaged, or nothing can be written there.
    """
    if out is None and remote.kept(results.root):
        where = remote.named(results.root)
        raise UsageError(f"report: {where} is no folder; lfn report {where} --out DIR writes it")
    home = results.root if out is None else out
    with _writing(results, home):
        home.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=home).close()
    notes = warnings.seen(results, step) if notes is None else notes
    cases = views.first_of_cases(results)
    traced = plot.some(cases, registry.MOST_TRACED) if traced is None else traced
    traces = views.views(cases, traced, step)
    data = {}
    if figures is None:
        figures = registry.of_report(
            results, traced, with_traces=files, hrefs=traces.hrefs(results)
        )
        # Traces are interactive charts on the page.
        on_page = {name for name in figures if isinstance(registry.FIGURES[name], registry.Means)}
        data = {name: _csv(results, name) for name in on_page}
    else:
        files, on_page = True, {*figures}
    shown = []
    made: dict[str, bytes] = {}
    for name, (figure, caption) in figures.items():
        kinds = [*(("png", "pdf") if files else ()), *(("svg",) if name in on_page else ())]
        for kind, drawn in plot.rendered(figure, kinds, origin=origin(results.runs)).items():
            if kind == "svg":
                shown.append(_figure(drawn.decode(), caption, data.get(name, "")))
            else:
                made[f"figures/{name}.{kind}"] = drawn
    for _ in range(len(results.runs) - len(cases)):
        step()
    page = _page(results, findings, shown, tables or {}, traces, home, seen, notes)
    _refuse_others(home, made, is_store=out is None or check_layout(home))
    with _writing(results, home):
        for file, content in made.items():
            replace_file(home / file, content)
        if laboratory.NAME in page:
            replace_file(home / laboratory.NAME, laboratory.page())
        return replace_file(home / "report.html", page)


def _refuse_others(home: Path, made: Iterable[str], *, is_store: bool) -> None:
    """Write no figures through a link, and nothing over files of others."""
    folder = home / "figures"
    if made and os.path.lexists(folder) and (folder.is_symlink() or not folder.is_dir()):
        raise StoreError(
            f"cannot write figures: {folder} is a link or no folder; remove it, or "
            "lfn report DIR --figures --out OTHER writes them elsewhere"
        )
    # The pages of a store are ours: earlier versions did not mark them.
    pages = () if is_store else ("report.html", laboratory.NAME)
    for file in (*made, *pages):
        output.refuse_others(home / file)


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
    figures: Sequence[str],
    tables: Mapping[str, Table],
    traces: Views,
    home: Path,
    seen: str,
    notes: Sequence[str],
) -> str:
    title = escape(results.title or "lfnlab results")
    body = [f"<h1>{title}</h1>", f'<p class="dim">{_subtitle(results)}</p>']
    if seen:
        body.append(f"<p>{escape(seen)}</p>")
    if findings:
        body += ["<h2>Claims</h2>", _findings(findings)]
    if (differs := differences.table(results)) is not None:
        body += ["<h2>What differs</h2>", _table(differs), f'<p class="dim">{differences.SAID}</p>']
    shown = ['<div class="figures">', *figures, "</div>"]
    first, *others = summary_tables(results)
    summary = [
        "<h2>Summary</h2>",
        *_summary(first, others, traces.hrefs(results)),
        f'<p class="dim">{escape(" ".join([f"A{averages(results)[1:]}.", *notes]))}</p>',
    ]
    # What all rows say together comes first, if they are many.
    body += [*shown, *summary] if len(first.rows) > _MANY_ROWS else [*summary, *shown]
    for heading, table in tables.items():
        body += [f"<h2>{escape(heading)}</h2>", _table(table)]
    if traces.shown:
        body.append(_traces(traces))
    runs = next((run.path.parent for run in results.runs[:1] if run.is_measured), None)
    where = quote(os.path.relpath(runs or results.root / "runs", home))
    body += [
        _scenarios(results),
        _laws(results),
        '<h2 id="runs">Runs</h2>',
        _runs(results, where),
        _provenance(results),
    ]
    data = traces.data(results.root, where)
    scripts = [asset(__package__, "report.js").decode()]
    return "\n".join(
        [
            f"{head(title, scripts=scripts)}\n<!-- {output.MARK} -->\n<body>",
            *body,
            f'<script type="application/json" id="traced">{data}</script>',
            elements(scripts),
            "</body>\n</html>\n",
        ]
    )


def _traces(traces: Views) -> str:
    """The part of the page with the traces, which ``report.js`` fills."""
    changes = any(chart["changes"] for view in traces.shown.values() for chart in view["charts"])
    return (
        '<h2 id="traces">Traces</h2>\n<p class="choose"><label for="view">Runs shown</label> '
        '<select id="view"></select> <span id="shown" class="paper-only"></span></p>\n'
        '<p id="told" role="status"></p>\n'
        '<div id="charts"></div>\n'
        '<p class="dim"><span class="on-screen">Drag to zoom in time; double-click shows all '
        "again. A name hides its trace and shows it again. The trace next to the pointer stands "
        "out. </span>Thinned for display: each pair of points is the smallest and the largest "
        "value of its interval. The tables hold every sample. Goodput counts data when they "
        "arrive, in order or not."
        f"{_CHANGES if changes else ''}</p>"
    )


def _summary(first: Table, others: Sequence[Table], hrefs: Mapping[Group, str]) -> Iterator[str]:
    """The tables of the summary, many rows folded; a row of the first leads to its traces."""
    folded = len(first.rows) > _MANY_ROWS
    if folded:
        yield f"<details><summary>{len(first.rows):,} rows</summary>"
    yield _table(first, [*hrefs.values()])
    if folded:
        yield "</details>"
    yield from map(_table, others)


def _csv(results: Results, name: str) -> str:
    """Where the numbers of a figure are: a file to save, or the command that prints them."""
    entry = registry.FIGURES[name]
    assert isinstance(entry, registry.Means)
    text = written.csv(entry.data(results))
    if len(text) > DATA_BYTES:
        return f"<code>lfn table {escape(shlex.quote(str(results.root)))} --csv</code>"
    return (
        f'<a download="{name}.csv" href="data:text/csv;charset=utf-8,{quote(text)}">'
        f"numbers (CSV)</a>"
    )


def _figure(svg: str, caption: str, data: str) -> str:
    data = data or '<a href="#runs">tables of the runs</a>'
    return (
        f'<figure><div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}">'
        f"{_inline(svg, caption)}</div>"
        f'<figcaption>{escape(caption)}.<span class="on-screen"> Data: {data}</span></figcaption>'
        "</figure>"
    )


def _subtitle(results: Results) -> str:
    ran = [run for run in results.looked_at if not run.is_measured]
    links = [link for run in ran for link in run.summary["links"][: 1 if run.is_dumbbell else None]]
    rates_bps = [link["rate_bps"] for link in links]
    rtts_ms = [flow["rtt_s"] * 1e3 for run in ran for flow in run.summary["flows"]]
    unit, unit_bps = rate_unit(max(rates_bps, default=0))
    where = " and ".join(sorted({_where(run) for run in results.looked_at}, reverse=True))
    base = f"base RTT {_span(rtts_ms)} ms" if rtts_ms else "background traffic only"
    return ", ".join(
        [
            *([f"{_span(bps / unit_bps for bps in rates_bps)} {unit}", base] if ran else []),
            f"{_span(run.summary['sim_s'] for run in results.looked_at)} s {where}",
            _count(results.runs, "run"),
        ]
    )


def _where(run: Run) -> str:
    if run.is_measured:
        return "measured"
    said = run.summary.get("testbed")
    if said is None:
        return "simulated"
    return f"on {said['virtual']} in virtual time" if "virtual" in said else "on a test bed"


def _span(values: Iterable[float]) -> str:
    """The least and the greatest value: "10 to 80", or "10" where all are equal."""
    known = sorted(set(values))
    return " to ".join(f"{value:g}" for value in sorted({known[0], known[-1]}))


def _count(items: Sequence[object], noun: str) -> str:
    return f"{len(items):,} {noun}{'' if len(items) == 1 else 's'}"


def _table(table: Table, hrefs: Sequence[str] = ()) -> str:
    """A table; with ``hrefs`` each row has a link, behind the columns that name it."""
    column = table.headings.index("law") if "law" in table.headings else None
    names = {} if column is None else {row[column]: row[column] for row in table.rows}
    swatches = {name: _swatch(style) for name, style in looks(names).items()}

    def cell(row: Sequence[str], i: int) -> str:
        if i >= table.keys:
            return f"<td>{escape(row[i]).replace('± ', '±&nbsp;')}</td>"
        law = row[i] if table.headings[i] == "law" else ""
        return f'<td class="text">{swatches.get(law, "")}{_law(law) or escape(row[i])}</td>'

    headings = [(heading, i < table.keys) for i, heading in enumerate(table.headings)]
    rows = [[cell(row, i) for i in range(len(row))] for row in table.rows]
    if hrefs:
        headings.insert(table.keys, ("traces", True))
        for row, cells, href in zip(table.rows, rows, hrefs, strict=True):
            said = escape(f"traces of {', '.join(row[: table.keys])}")
            cells.insert(
                table.keys,
                f'<td class="text lead"><a href="{href}" aria-label="{said}">show</a></td>',
            )
    return html_table(headings, ["".join(cells) for cells in rows])


def _law(name: str) -> str:
    """The name of a law, with a link to what the page says of it; empty for other names."""
    info = known(name) if name else None
    return "" if info is None else f'<a href="#law-{info.name}">{escape(name)}</a>'


def _laws(results: Results) -> str:
    """The first words of each law's card, and the card without its test vectors, folded."""
    found = {
        info.name: info for run in results.looked_at for law in run.laws if (info := known(law))
    }
    if not found:
        return ""
    parts = ["<h2>Laws</h2>"]
    for name, info in found.items():
        _, first, *rest = re.split(r"\n\n+", info.card(vectors=False).strip(), maxsplit=2)
        parts.append(
            f'<section id="law-{name}"><h3>{escape(info.title)}</h3>{as_html(first, found)}'
            f"<details><summary>Card of {name}, from: {escape(info.source)}</summary>"
            f'<div class="card">{as_html("".join(rest), found)}</div></details></section>'
        )
    command = f"<code>lfn laws {next(iter(found))}</code>"
    said = f"{command} prints a card, and with <code>--vectors</code> its test vectors."
    return "\n".join([*parts, f'<p class="dim">{said}</p>'])


def _swatch(style: Look) -> str:
    """A piece of the line that a law has in the figures: its colour and its dashes."""
    dashes = " ".join(f"{1.5 * length:g}" for length in style.dashes)
    return (
        '<svg class="swatch" viewBox="0 0 30 4" aria-hidden="true"><path d="M0 2H30" '
        f'stroke="{style.color}" stroke-width="2.5" stroke-dasharray="{dashes or "none"}"/></svg>'
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
    return html_table([(heading, True) for heading in headings], rows, "data claims")


def _scenarios(results: Results) -> str:
    cases = [run for run in plot.first_seed(results) if not run.is_measured]
    if not cases:
        return ""
    parts = ["<h2>Scenario</h2>"]
    if len(cases) > 1:
        varied = ", ".join(results.runs[0].factors)
        parts.append(f"<p>The runs differ in {escape(varied)} and seed. The first:</p>")
    text = read_text(cases[0].path / "scenario.toml")
    parts.append(f"<pre>{escape(text)}</pre>")
    if href := laboratory.link(cases[0]):
        parts.append(
            f'<p class="on-screen"><a href="{escape(href)}">Simulate it in the browser</a>, '
            "change it, and see what follows.</p>"
        )
    return "\n".join(parts)


def _runs(results: Results, where: str) -> str:
    left = _LINK_CHARACTERS

    def simulate(run: Run) -> str:
        """The link that simulates a run in the browser."""
        nonlocal left
        href = laboratory.link(run)
        if not href or len(href) > left:
            return ""
        left -= len(href)
        said = escape(f"simulate {plot.panel_title(run)}, seed {run.seed}")
        return f'<a href="{escape(href)}" aria-label="{said}">simulate</a>'

    def folder(run: Run) -> str:
        """The link to a run's files, or the key of one that keeps its summary alone."""
        key = escape(run.path.name)
        if not run.path.is_dir() or run.is_measured:
            return f"<code>{key}</code>"
        return f'<a href="{where}/{quote(run.path.name)}/"><code>runs/{key}</code></a>'

    rows = [
        f'<td class="text">{escape(plot.panel_title(run))}</td><td>{run.seed}</td>'
        f'<td class="text"><code>{escape(run.summary["hash"])}</code></td>'
        f"<td>{_number(run, 'data_packets_delivered', ',')}</td>"
        f"<td>{_number(run, 'wall_s', '.2f')}</td>"
        f'<td class="text">{folder(run)}</td>'
        f'<td class="text">{simulate(run)}</td>'
        for run in results.runs[:_MOST_RUNS]
    ]
    headings = [
        ("run", True),
        ("seed", False),
        ("hash of the result", True),
        ("data packets", False),
        ("wall time (s)", False),
        ("directory", True),
        ("in the browser", True),
    ]
    told = _count(results.runs, "run")
    if len(rows) < len(results.runs):
        told = f"{len(rows):,} of {told}"
    summary = f"{told} and where the tables are"
    listed = f"<code>lfn store ls {escape(shlex.quote(str(results.root)))}</code> lists all runs."
    return (
        f"<details><summary>{summary}</summary>{html_table(headings, rows)}"
        f'<p class="dim">{listed}</p></details>'
    )


def _number(run: Run, key: str, form: str) -> str:
    """A number of a run's summary; a measurement has none."""
    value = cast("Mapping[str, Any]", run.summary).get(key)
    return "–" if value is None else format(value, form)


def _provenance(results: Results) -> str:
    seen = {
        f"lfnlab {p['code']}, Python {p['python']}, {p['system']}"
        for p in (provenance_of(run.path) for run in results.looked_at)
    }
    return "".join(f'<p class="dim">Made by {escape(line)}.</p>' for line in sorted(seen))


def _inline(svg: str, label: str) -> str:
    """The figure for the page: its ink is the page's, for dark and light; its width a limit.

    Its links are for the pointer. The table has the same ones for the keyboard.
    """
    svg = svg[svg.index("<svg") :].replace(plot.INK, "currentColor")
    svg = svg.replace(GROUND, "var(--page)")
    svg = svg.replace(' target="_blank">', ' tabindex="-1">')
    width = re.search(r'width="([\d.]+pt)"', svg)
    natural = f' style="--natural: {width[1]}"' if width else ""
    return svg.replace("<svg", f'<svg role="img" aria-label="{escape(label)}"{natural}', 1)
