"""Draw any table of a result: time series, CDF, bars, heat map, phase plot.

A source is a results directory, the directory of one run (or of a measured flow), or one Parquet
file. Every row also carries what tells its run apart: ``law``, ``seed``, the factors of the
experiment, ``case`` (law and factors in words), ``run`` and ``source``. Columns say their units by
their names (``docs/results.md``), and so do the axes.
"""

from __future__ import annotations

import difflib
import itertools
import re
from collections import Counter
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import LogFormatter

from lfnlab import metrics, plot, statistics
from lfnlab.errors import LawError, StoreError, UsageError
from lfnlab.law import law, laws
from lfnlab.store import TABLES
from lfnlab.sweep import Results, Run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

Kind = Literal["time", "cdf", "bar", "heat", "phase"]
Log = Literal["x", "y", "xy"]
FORMATS = ("png", "pdf", "svg")

GOODPUT, SUMMARY, FLOWS, LINKS = "goodput", "summary", "summary.flows", "summary.links"
_RUN_COLUMNS = ("law", "direction", "case", "seed", "run", "source")
# One line of a plot is the rows that agree in all of these.
_TRACE = ("source", "run", "flow", "link", "probe")
_SAMPLE = ("source", "run", "t_s")
_AND = "+"
# Tables of things that happened: dots, where samples are joined by lines.
_EVENTS = ("events", "packets")
_NAMES: dict[str, dict[str, tuple[str, ...]]] = {
    "events": {"kind": ("fast retransmit", "timeout", "ECN", "undo", "end of recovery")},
    "packets": {
        "point": ("arrived", "dropped", "left"),
        "kind": ("data", "ACK", "UDP"),
        "direction": ("forward", "reverse"),
    },
}
_MOST_TRACES, _MOST_GROUPS, _MOST_BARS = 10, 12, 60
_CELLS, _CURVE_POINTS = 80, 400
_DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2)))

# Units of columns whose names do not say them.
_UNITS = {
    "packets": "packets",
    "arrivals": "packets",
    "drops": "packets",
    "early_drops": "packets",
    "marks": "packets",
    "random_losses": "packets",
    "max_queue_packets": "packets",
    "bytes": "B",
    "retransmits": "segments",
    "sent": "segments",
    "lost": "segments",
    "seq": "segments",
    "utilization": "1",
    "jain": "1",
    "cov": "1",
}
_SUFFIXES = {
    "_s": "s",
    "_ps": "ps",
    "_bps": "bit/s",
    "_seg": "segments",
    "_segments": "segments",
    "_bytes": "B",
    "_packets": "packets",
}
_WORDS = {
    "t_s": "time",
    "cwnd_seg": "congestion window",
    "ssthresh_seg": "slow-start threshold",
    "inflight_seg": "in flight",
    "srtt_s": "smoothed RTT",
    "rtt_s": "RTT",
    "pacing_bps": "pacing rate",
    "seq": "sequence number",
    "packets": "queue",
    "bytes": "queue",
    "jain": "Jain's fairness index",
    "cov": "coefficient of variation of goodput",
    "utilization": "utilisation",
    "mean_queue_s": "mean queueing delay",
    "p99_queue_s": "99th percentile of queueing delay",
}
# From large to small; an axis takes the largest unit that its largest value reaches.
_SCALES = {
    "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")),
    "bit/s": ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")),
    "B": ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")),
}


@dataclass(frozen=True)
class Request:
    """What to draw; None is "choose".

    ``where`` holds conditions such as "flow=0,3", "law!=reno", "t_s>=10".
    """

    kind: Kind | None = None
    x: str | None = None
    y: str | None = None
    z: str | None = None
    by: str | None = None
    panel: str | None = None
    table: str | None = None
    where: tuple[str, ...] = ()
    log: Log | None = None


@dataclass(frozen=True)
class Drawing:
    """A figure, what it shows in one line, and a name for its file."""

    figure: Figure
    says: str
    name: str


def draw(paths: Sequence[Path], request: Request) -> Drawing:
    """Draw what was asked for of these sources.

    Raises:
        UsageError: for a table, column or condition that is not there, or a selection without rows.
        StoreError: when a source cannot be read.
    """
    return _draw(Tables(paths), request)


def listing(paths: Sequence[Path]) -> str:
    """Every table with its rows, and its columns with type and unit."""
    tables = Tables(paths)
    lines = []
    for name in tables.names:
        frame = tables.frame(name)
        lines.append(f"{name}: {frame.select(pl.len()).collect().item():,} rows")
        for column, dtype in frame.collect_schema().items():
            lines.append(f"    {column:20} {str(dtype).lower():8} {unit(column)}".rstrip())
    return "\n".join(lines)


def unit(column: str) -> str:
    """The unit that a column's name says; empty for names and counts."""
    if column in _UNITS:
        return _UNITS[column]
    return next((u for suffix, u in _SUFFIXES.items() if column.endswith(suffix)), "")


class Tables:
    """The tables of all sources, stored and derived, each as one lazy frame."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._files: dict[str, list[tuple[Path, Run | None, str]]] = {}
        self._runs: list[tuple[Run, str]] = []
        names = [path.stem if path.suffix == ".parquet" else path.resolve().name for path in paths]
        self._sources = [
            short if names.count(short) == 1 else str(path)
            for path, short in zip(paths, names, strict=True)
        ]
        for path, name in zip(paths, self._sources, strict=True):
            if path.suffix == ".parquet":
                if not path.is_file():
                    raise StoreError(f"cannot read results: there is no {path}")
                home = path.parent
                run = _single(home) if (home / "summary.json").is_file() else None
                self._files.setdefault(path.stem, []).append((path, run, name))
                continue
            for run in _runs(path):
                self._runs.append((run, name))
                for file in sorted(run.path.glob("*.parquet")):
                    self._files.setdefault(file.stem, []).append((file, run, name))
        self.several = len(paths) > 1

    @cached_property
    def names(self) -> list[str]:
        """Stored tables first, then those made from them and from the summaries."""
        stored = sorted(self._files, key=lambda n: (TABLES.index(n) if n in TABLES else 9, n))
        derived = [GOODPUT, SUMMARY, FLOWS, LINKS] if self._runs else []
        return list(dict.fromkeys([*stored, *(name for name in derived if self._has(name))]))

    def _has(self, name: str) -> bool:
        if name == GOODPUT:
            return "flows" in self._files
        key = "links" if name == LINKS else "flows"
        return any(run.summary[key] for run, _ in self._runs)

    @cache  # noqa: B019  (a Tables lives as long as its drawing)
    def frame(self, name: str) -> pl.LazyFrame:
        """Rows of all runs, with the columns that tell them apart; of "a+b" those of one time."""
        if _AND in name:
            left, right = (self.frame(part) for part in name.split(_AND))
            both = set(left.collect_schema()) & set(right.collect_schema())
            return left.join(right.drop(both - set(_SAMPLE)), on=_SAMPLE, maintain_order="left")
        frames = [(entry[2], self._stored(*entry)) for entry in self._files.get(name, [])]
        have = {run.path for _, run, _ in self._files.get(name, []) if run is not None}
        for run, source in self._runs:
            if run.path not in have and (made := _derived(run, name)) is not None:
                frames.append((source, _told_apart(made.lazy(), run, source)))
        # What one source has stored may be made of another's: back to the order of the sources.
        frames.sort(key=lambda pair: self._sources.index(pair[0]))
        return pl.concat((frame for _, frame in frames), how="diagonal_relaxed")

    def columns(self, name: str) -> pl.Schema:
        """Columns of a table with their types."""
        return self.frame(name).collect_schema()

    def _stored(self, file: Path, run: Run | None, source: str) -> pl.LazyFrame:
        frame = pl.scan_parquet(file)
        try:
            frame.collect_schema()
        except (pl.exceptions.PolarsError, OSError):
            raise StoreError(f"cannot read results: {file} is not a table") from None
        if run is None:
            return frame.with_columns(source=pl.lit(source))
        return _told_apart(_named(frame, file.stem, run), run, source)


def _runs(path: Path) -> Sequence[Run]:
    if (path / "summary.json").is_file() and not (path / "experiment.json").is_file():
        return [_single(path)]
    return Results.load(path).runs


def one_run(path: Path, which: str | None) -> Run:
    """The run of a results directory that has this seed or key; without either, the only one.

    Raises:
        UsageError: when there is none or more than one.
        StoreError: when there are no results.
    """
    runs = _runs(path)
    found = [run for run in runs if which in (None, str(run.seed), run.path.name)]
    if len(found) != 1:
        known = ", ".join(f"{r.path.name} ({plot.panel_title(r)}, seed {r.seed})" for r in runs)
        said = "several runs" if found else "no such run"
        raise UsageError(f"--run: {said}; allowed, by key or by seed: {known}")
    return found[0]


def _single(path: Path) -> Run:
    run = Run(path, 0, {})
    return Run(path, run.summary.get("seed") or 0, {})


def _derived(run: Run, name: str) -> pl.DataFrame | None:
    """A table that is made from a run's others, or None if this run has no rows for it."""
    rows: list[dict[str, Any]]
    if name == GOODPUT:
        goodput = metrics.goodput_bins(run.table("flows")).lazy()
        return _named(goodput, name, run).collect()
    if name == SUMMARY:
        rows = run.by_law() if run.summary["links"] else _measured_by_law(run)
    elif name == FLOWS:
        rows = [{"flow": flow["id"], **flow} for flow in run.summary["flows"]]
    elif name == LINKS:
        rows = [{"link": link["id"], **link} for link in run.summary["links"]]
    else:
        return None
    scalars = [
        {key: v for key, v in row.items() if not isinstance(v, list | dict) and key != "id"}
        for row in rows
    ]
    return pl.DataFrame(scalars, infer_schema_length=None) if scalars else None


def _measured_by_law(run: Run) -> list[dict[str, Any]]:
    """As :meth:`Run.by_law`, of a measurement, which knows flows but no links."""
    rows = []
    for name in run.laws:
        flows = [flow for flow in run.summary["flows"] if flow["law"] == name]
        goodputs = [flow["goodput_bps"] for flow in flows]
        rows.append(
            {
                "law": name,
                "flows": len(flows),
                "goodput_bps": sum(goodputs),
                "jain": metrics.jain(goodputs),
                "cov": statistics.interval(f["cov"] for f in flows if f["cov"] is not None).mean,
            }
        )
    return rows


def _named(frame: pl.LazyFrame, table: str, run: Run) -> pl.LazyFrame:
    """Names in place of indices, and the law of each row's flow."""
    columns = frame.collect_schema()
    summary = run.summary
    if "flow" in columns:
        frame = frame.with_columns(
            law=_renamed("flow", {flow["id"]: flow["law"] for flow in summary["flows"]}, "other")
        )
    if "link" in columns and columns["link"].is_integer():
        ids = {i: link["id"] for i, link in enumerate(summary["links"])}
        frame = frame.with_columns(link=_renamed("link", ids))
    for column, words in _NAMES.get(table, {}).items():
        if column in columns:
            frame = frame.with_columns(_renamed(column, dict(enumerate(words))).alias(column))
    if "t_ps" in columns:
        frame = frame.with_columns(t_s=pl.col("t_ps") / 1e12)
    if "probe" in columns and "flow" in columns:
        names = pl.col("probe").cast(pl.String)
        for each in run.laws:
            own = _renamed("probe", dict(enumerate(law(each).probes)))
            names = pl.when(pl.col("law") == each).then(own).otherwise(names)
        frame = frame.with_columns(probe=names)
    return frame


def _renamed(column: str, names: dict[int, str], default: str | None = None) -> pl.Expr:
    """Names for indices; what has none is ``default``, or its own digits."""
    other = pl.col(column).cast(pl.String) if default is None else pl.lit(default)
    if not names:
        return other
    return pl.col(column).replace_strict(
        list(names), list(names.values()), default=other, return_dtype=pl.String
    )


def _told_apart(frame: pl.LazyFrame, run: Run, source: str) -> pl.LazyFrame:
    columns = frame.collect_schema().names()
    tags: dict[str, Any] = {
        "law": ", ".join(run.laws),
        **run.factors,
        "case": plot.panel_title(run),
        "seed": run.seed,
        "run": run.path.name,
        "source": source,
    }
    # The law of a row's own flow says more than that of the run.
    return frame.with_columns(
        pl.lit(value).alias(name) for name, value in tags.items() if name not in columns
    )


def _draw(tables: Tables, request: Request) -> Drawing:
    kind, name, x, y = _chosen(tables, request)
    columns = tables.columns(name)
    frame = _selected(tables, name, request, [c for c in (x, y, request.z) if c])
    for column in dict.fromkeys(c for c in (y, request.z) if c):
        if not columns[column].is_numeric():
            raise UsageError(
                f"{column} of {name} holds text, which has no axis of numbers; use it as "
                f"--by {column} or --panel {column}"
            )
    by = request.by or _default_by(frame, tables.several)
    panel = request.panel
    if panel is None and kind in ("time", "heat") and request.by is None and not tables.several:
        panel = "case" if "case" in frame.columns and frame["case"].n_unique() > 1 else None
    note = ""
    if kind in ("time", "phase") and by != "seed":
        frame, note = _first_seeds(frame, request)
    painter = _Painter(frame, x, y, request.z, by, panel, request.log, name in _EVENTS)
    figure, more = painter.paint(kind)
    says = f"{kind} of table {name}: {', '.join(n for n in (note, more) if n)}"
    return Drawing(figure, says, f"{y}-{kind}")


def _chosen(tables: Tables, request: Request) -> tuple[Kind, str, str | None, str]:
    """Kind, table, x and y: as asked for, or what shows most."""
    kind, x, y = request.kind, request.x, request.y
    if kind == "cdf" and y is None:
        x, y = None, x
    if y is None:
        kind, y = _overview(tables, request)
    if x is None and kind in ("time", "heat"):
        x = "t_s"
    wanted = _wanted(request, x, y)
    if kind is None and x not in (None, "t_s"):
        name = _table_of(tables, request, wanted, timed=False)
        assert x is not None
        timed = "t_s" in tables.columns(name)
        text = not tables.columns(name)[x].is_numeric()
        kind = "bar" if text or x in _RUN_COLUMNS or not timed else "phase"
    name = _table_of(tables, request, wanted, timed=kind != "bar")
    columns = tables.columns(name)
    if kind is None:
        kind = "time" if "t_s" in columns else "bar"
    if x is None and kind == "time":
        x = "t_s"
    if x is None and kind == "bar":
        x = next((c for c in ("case", "law", "link", "flow", "source") if c in columns), None)
        if x is None:
            raise UsageError(f"--kind bar: say with --x which column of {name} names the bars")
    return kind, name, x, y


def _overview(tables: Tables, request: Request) -> tuple[Kind | None, str]:
    """Kind and y where no column was named: the first that has rows."""
    firsts: dict[str | None, tuple[str, ...]] = {
        "bar": ("goodput_bps",),
        "cdf": ("rtt_s", "goodput_bps"),
        "heat": ("cwnd_seg", "packets"),
        None: ("cwnd_seg", "packets", "goodput_bps"),
    }
    kind = request.kind
    for y in firsts.get(kind, firsts[None]):
        for name in [request.table] if request.table else tables.names:
            if name in tables.names and y in tables.columns(name) and _any_row(tables, name):
                return kind or ("bar" if y == "goodput_bps" else None), y
    for name in [request.table] if request.table else tables.names:
        if name in tables.names:
            for column, dtype in tables.columns(name).items():
                named = column in (*_RUN_COLUMNS, *_TRACE, "t_s", request.x)
                if dtype.is_numeric() and not named:
                    return kind, column
    if request.table:
        _table_of(tables, request, [], timed=True)
    raise UsageError("nothing to draw: say which column with --y; --list shows them")


def _any_row(tables: Tables, name: str) -> bool:
    return tables.frame(name).head(1).collect().height > 0


def _wanted(request: Request, x: str | None, y: str) -> list[str]:
    conditions = [_condition(text)[0] for text in request.where]
    named = [x, y, request.z, request.by, request.panel, *conditions]
    return list(dict.fromkeys(name for name in named if name))


def _table_of(tables: Tables, request: Request, wanted: Sequence[str], *, timed: bool) -> str:
    """The first table with all the columns; of two, the one over time if ``timed``."""
    if request.table is not None:
        if request.table not in tables.names:
            raise UsageError(
                f'--table: there is no "{request.table}"{_nearest(request.table, tables.names)}; '
                f"allowed: {', '.join(tables.names)}"
            )
        names = [request.table]
    else:
        names = sorted(tables.names, key=lambda n: ("t_s" in tables.columns(n)) != timed)
    fitting = [name for name in names if _has(tables.columns(name), wanted)]
    if not fitting and request.kind in (None, "phase") and request.table is None:
        # Two tables sampled at the same times, such as windows and queues.
        pairs = itertools.permutations((n for n in names if _has(tables.columns(n), _SAMPLE)), 2)
        fitting = [
            _AND.join(pair)
            for pair in pairs
            if _has([c for n in pair for c in tables.columns(n)], wanted)
        ]
    if fitting:
        # A table without rows only if no other has the columns.
        return next((name for name in fitting if _any_row(tables, name)), fitting[0])
    where = {c: [name for name in names if c in tables.columns(name)] for c in wanted}
    known = dict.fromkeys(c for name in names for c in tables.columns(name))
    for column, holders in where.items():
        if not holders:
            place = f"table {names[0]} has" if len(names) == 1 else "there is"
            raise UsageError(
                f'{place} no column "{column}"{_nearest(column, known)}; --list shows all'
            )
    held = "; ".join(f"{column} is in {', '.join(holders)}" for column, holders in where.items())
    raise UsageError(f"no table has all of these columns: {held}")


def _has(columns: Iterable[str], wanted: Iterable[str]) -> bool:
    return set(wanted) <= set(columns)


def _nearest(word: str, known: Iterable[str]) -> str:
    known = list(known)
    close = difflib.get_close_matches(word, known, 1, 0.5)
    close = close or [name for name in known if word.lower() in name.lower()]
    return f', nearest is "{close[0]}"' if close else ""


def _condition(text: str) -> tuple[str, str, str]:
    found = re.fullmatch(r"\s*([\w.-]+?)\s*(!=|<=|>=|=|<|>)\s*(.+?)\s*", text)
    if found is None:
        raise UsageError(
            f'--where: "{text}" is no condition; write for example flow=0,3 or "t_s>=10" '
            "(=, !=, <, <=, >, >=)"
        )
    return found[1], found[2], found[3]


def _selected(tables: Tables, name: str, request: Request, numbers: Sequence[str]) -> pl.DataFrame:
    """The rows that meet all conditions, with those columns that are drawn or tell rows apart."""
    columns = tables.columns(name)
    frame = tables.frame(name)
    for text in request.where:
        column, sign, value = _condition(text)
        frame = frame.filter(_filter(text, column, columns[column], sign, value))
    drawn = [*numbers, request.by, request.panel, "t_s", *_RUN_COLUMNS, *_TRACE]
    keep = list(dict.fromkeys(c for c in drawn if c and c in columns))
    rows = frame.select(keep).collect()
    finite = [c for c in numbers if columns[c].is_numeric()]
    rows = rows.filter(pl.all_horizontal(pl.lit(True), *(_finite(c, columns[c]) for c in finite)))
    if rows.height == 0:
        raise UsageError(_why_empty(tables, name, request))
    return rows


def _finite(column: str, dtype: pl.DataType) -> pl.Expr:
    known = pl.col(column).is_not_null()
    if column in ("rtt_s", "srtt_s"):
        known &= pl.col(column) > 0.0  # zero until there is a sample
    return known & pl.col(column).is_finite() if dtype.is_float() else known


def _filter(text: str, column: str, dtype: pl.DataType, sign: str, value: str) -> pl.Expr:
    here = pl.col(column)
    numeric = dtype.is_numeric()
    operands: list[Any] = [part.strip() for part in value.split(",")]
    if numeric:
        try:
            operands = [float(part) for part in operands]
        except ValueError:
            raise UsageError(f"--where {text}: {column} is a number, {value} is not") from None
    if sign in ("=", "!="):
        among = here.cast(pl.Float64 if numeric else pl.String).is_in(operands)
        return among if sign == "=" else ~among
    if not numeric or len(operands) != 1:
        raise UsageError(f"--where {text}: {sign} takes a column of numbers and one number")
    compare: dict[str, Callable[[Any], pl.Expr]] = {
        "<": here.__lt__,
        "<=": here.__le__,
        ">": here.__gt__,
        ">=": here.__ge__,
    }
    return compare[sign](operands[0])


def _why_empty(tables: Tables, name: str, request: Request) -> str:
    """What the columns of the conditions do hold, so that the next try succeeds."""
    holds = []
    for column in dict.fromkeys(_condition(text)[0] for text in request.where):
        values = tables.frame(name).select(pl.col(column).unique().sort()).collect().to_series()
        some = values.to_list() if values.len() <= 10 else [values.min(), "...", values.max()]
        holds.append(f"{column} is {', '.join(str(v) for v in some)}")
    conditions = " and ".join(request.where)
    if not conditions:
        return f'table {name} has no rows to draw: sample = "off", or the run was too short'
    return f"no row of {name} has {conditions}; {'; '.join(holds)}"


def _default_by(frame: pl.DataFrame, several: bool) -> str | None:
    """The column whose values get colours: the first that has a few."""
    for column in ("probe", "link", "law", "case" if several else "flow"):
        if column in frame.columns and 2 <= frame[column].n_unique() <= _MOST_GROUPS:
            return column
    if "law" in frame.columns:
        return "law"
    return "source" if several else None


def _first_seeds(frame: pl.DataFrame, request: Request) -> tuple[pl.DataFrame, str]:
    """One run of each case, because a trace is no mean; which, is said."""
    named = any(_condition(text)[0] in ("seed", "run") for text in request.where)
    if named or not {"case", "run", "seed", "source"} <= set(frame.columns):
        return frame, ""
    first = pl.col("run") == pl.col("run").first().over("source", "case")
    kept = frame.filter(first)
    runs, all_runs = kept["run"].n_unique(), frame["run"].n_unique()
    return (
        kept,
        f"the first seed of each case, {runs} of {all_runs} runs" if runs < all_runs else "",
    )


@dataclass(frozen=True)
class _Axis:
    """How a column is shown: divided by ``scale``, under ``label``."""

    column: str
    scale: float
    label: str

    def of(self, frame: pl.DataFrame) -> NDArray[np.float64]:
        return frame[self.column].to_numpy().astype(float) / self.scale


def _axis(frame: pl.DataFrame, column: str) -> _Axis:
    words = _WORDS.get(column)
    shown, scale = unit(column), 1.0
    if words is None:
        suffix = next((s for s in _SUFFIXES if column.endswith(s)), "")
        words = column.removesuffix(suffix).replace("_", " ") if shown else column.replace("_", " ")
    if shown in _SCALES:
        largest = float(np.max(np.abs(frame[column].to_numpy().astype(float)), initial=0.0))
        steps = _SCALES[shown]
        scale, shown = next((step for step in steps if largest >= step[0]), steps[0])
    return _Axis(column, scale, words if shown in ("", "1") else f"{words} ({shown})")


class _PlainLog(LogFormatter):
    """Numbers as they are: the house's style parses no formulas."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        return f"{x:g}" if super().__call__(x, pos) else ""


Trace = tuple[Any, "NDArray[np.float64]", "NDArray[np.float64]"]
Pairs = tuple[str, str, list[list[Trace]]]
"""Labels of both axes; of each panel the traces: key of the look, across, up."""


class _Painter:
    """Paints one selection of rows."""

    def __init__(
        self,
        frame: pl.DataFrame,
        x: str | None,
        y: str,
        z: str | None,
        by: str | None,
        panel: str | None,
        log: Log | None,
        dots: bool,
    ) -> None:
        self.frame, self.x, self.y, self.z = frame, x, y, z
        self.by, self.panel, self.log, self.dots = by, panel, log or "", dots
        self.sources = _values(frame, "source")
        self.panels = _values(frame, panel) if panel else [None]
        if len(self.panels) > 2 * _MOST_GROUPS:
            raise UsageError(f"--panel {panel}: {len(self.panels)} values are too many panels")

    def paint(self, kind: Kind) -> tuple[Figure, str]:
        made: Callable[[], tuple[Figure, str]] = {
            "time": self._time,
            "phase": self._phase,
            "cdf": self._cdf,
            "bar": self._bar,
            "heat": self._heat,
        }[kind]
        with plot.house_style():
            return made()

    def _figure(self, size: tuple[float, float] = (6.4, 4.0)) -> tuple[Figure, list[Axes]]:
        count = len(self.panels)
        columns = 1 if count == 1 else 2 if count <= 8 else 3
        rows = -(-count // columns)
        if count > 1:
            size = (3.6 * columns, 0.6 + 1.7 * rows)
        figure = Figure(figsize=size)
        grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).flatten()
        for axes in grid[count:]:
            axes.remove()
        for axes in grid[max(0, count - columns) : count]:
            axes.tick_params(labelbottom=True)
        for axes, value in zip(grid, self.panels, strict=False):
            if value is not None:
                axes.set_title(str(value), pad=2)
            for name, axis, scaled in (
                ("x", axes.xaxis, axes.set_xscale),
                ("y", axes.yaxis, axes.set_yscale),
            ):
                if name in self.log:
                    scaled("log")
                    # Between the powers of ten there are numbers only where the axis is short.
                    axis.set_major_formatter(_PlainLog())
                    axis.set_minor_formatter(_PlainLog(minor_thresholds=(1.0, 0.5)))
        return figure, list(grid[:count])

    def _parts(self) -> Iterator[pl.DataFrame]:
        for value in self.panels:
            yield (
                self.frame if self.panel is None else self.frame.filter(pl.col(self.panel) == value)
            )

    def _groups(self, most: int = _MOST_GROUPS) -> dict[tuple[Any, str], dict[str, Any]]:
        """Colour, marker, dash and label of each value of ``by`` in each source."""
        values = _values(self.frame, self.by) if self.by else [None]
        if len(values) > most:
            raise UsageError(
                f"--by {self.by}: {len(values):,} values; at most {most} can be told apart. "
                "Choose some with --where"
            )
        columns = [c for c in dict.fromkeys((self.by, "source")) if c in self.frame.columns]
        there = set(self.frame.select(columns).unique().iter_rows()) if columns else {()}
        looks: dict[tuple[Any, str], dict[str, Any]] = {}
        used: Counter[str] = Counter()
        for i, value in enumerate(values):
            color, marker = _look(self.by, value, i)
            for source in self.sources:
                row = {"source": source, self.by: value}
                if tuple(row[column] for column in columns) not in there:
                    continue
                words = [] if value is None else [_in_words(self.by, value)]
                if len(self.sources) > 1 and self.by != "source":
                    words.append(str(source))
                looks[value, source] = {
                    "color": color,
                    "marker": marker,
                    "linestyle": "none" if self.dots else _DASHES[used[color] % len(_DASHES)],
                    "label": ", ".join(words),
                }
                used[color] += 1
        return looks

    def _key(self, row: dict[str, Any]) -> tuple[Any, Any]:
        return (row[self.by] if self.by else None, row.get("source"))

    def _traces(self, part: pl.DataFrame) -> tuple[list[pl.DataFrame], int]:
        """The lines of one panel: ten at most, evenly from first to last."""
        keys = [c for c in dict.fromkeys([*_TRACE, self.by]) if c and c in part.columns]
        traces = part.partition_by(keys, maintain_order=True) if keys else [part]
        return plot.some(traces, _MOST_TRACES), len(traces)

    def _legend(self, figure: Figure, looks: dict[Any, dict[str, Any]], seen: set[Any]) -> None:
        """Of those that are drawn; none for one alone, nor where the panels say it."""
        shown = [look for key, look in looks.items() if key in seen and look["label"]]
        titled = self.panel is not None and self.by in (
            self.panel,
            "law" if self.panel == "case" else "",
        )
        if len(shown) < 2 or titled:
            return
        handles: list[Artist] = [
            Patch(
                facecolor=look["color"],
                edgecolor="white",
                lw=0,
                hatch=look["hatch"],
                label=look["label"],
            )
            if "hatch" in look
            else Line2D([], [], **look, markersize=4)
            for look in shown
        ]
        # A letter takes about a sixteenth of an inch, the handle as much as nine.
        longest = max(len(look["label"]) for look in shown)
        columns = int(16 * figure.get_figwidth() / (longest + 9))
        figure.legend(
            handles=handles,
            loc="outside lower center",
            ncols=max(1, min(4, columns, len(handles))),
            handlelength=3,
        )

    def _time(self) -> tuple[Figure, str]:
        assert self.x is not None
        figure, grid = self._figure()
        x, y = _axis(self.frame, self.x), _axis(self.frame, self.y)
        looks, seen, drawn, there = self._groups(10**6), set(), 0, 0
        for axes, part in zip(grid, self._parts(), strict=True):
            traces, count = self._traces(part)
            drawn, there = drawn + len(traces), there + count
            for trace in traces:
                key = self._key(trace.row(0, named=True))
                seen.add(key)
                look = {**looks[key], "label": None}
                if self.panel is not None and not self.dots:
                    look["marker"] = None
                trace = trace.sort(self.x, maintain_order=True)
                t, v = plot.thin(x.of(trace), y.of(trace))
                every = 1 if self.dots else max(1, t.size // 8)
                look |= {"markevery": every, "markersize": 2.5 if self.dots else 3.5, "lw": 1.0}
                axes.plot(t, v, **look)
            self._floor(axes, y.of(self.frame))
        self._label(figure, grid, x.label, y.label)
        self._legend(figure, looks, seen)
        return figure, f"{drawn} of {there} traces" if drawn < there else _count(drawn, "trace")

    def _phase(self) -> tuple[Figure, str]:
        figure, grid = self._figure((4.8, 4.6))
        x_label, y_label, parts = self._two_flows() if self.x is None else self._two_columns()
        looks = {key: {**look, "marker": None} for key, look in self._groups(10**6).items()}
        seen, drawn = set(), 0
        for axes, traces in zip(grid, parts, strict=True):
            for key, u, v in traces:
                seen.add(key)
                drawn += 1
                keep = _thinned(u, v)
                axes.plot(u[keep], v[keep], **{**looks[key], "label": None}, lw=0.8, alpha=0.9)
                axes.plot(u[-1:], v[-1:], color=looks[key]["color"], marker="o", ms=4)
            if self.x is None:
                end = max(axes.get_xlim()[1], axes.get_ylim()[1])
                axes.plot([0, end], [0, end], color=plot.INK, lw=0.7, ls=(0, (2, 3)))
                axes.set(xlim=(0, end), ylim=(0, end), aspect="equal")
        self._label(figure, grid, x_label, y_label)
        self._legend(figure, looks, seen)
        return figure, f"{_count(drawn, 'trace')}, each with a dot at its end"

    def _two_columns(self) -> Pairs:
        assert self.x is not None
        x, y = _axis(self.frame, self.x), _axis(self.frame, self.y)
        parts = [
            [(self._key(t.row(0, named=True)), x.of(t), y.of(t)) for t in self._traces(part)[0]]
            for part in self._parts()
        ]
        return x.label, y.label, parts

    def _two_flows(self) -> Pairs:
        """One column of one flow against that of another, as Chiu and Jain draw two flows."""
        needs = {"flow", "t_s"}
        flows = _values(self.frame, "flow") if needs <= set(self.frame.columns) else []
        if len(flows) < 2:
            raise UsageError(
                f"--kind phase draws {self.y} of one flow over that of another; flows here: "
                f"{len(flows)}. Say --x for two columns of one"
            )
        axis = _axis(self.frame, self.y)
        first, second = flows[:2]
        self.by = "law" if self.by == "flow" else self.by
        parts = []
        for part in self._parts():
            traces = []
            for run in part.partition_by(["source", "run"], maintain_order=True):
                a, b = (
                    run.filter(pl.col("flow") == flow).unique("t_s", maintain_order=True)
                    for flow in (first, second)
                )
                both = a.join(b.select("t_s", second=self.y), on="t_s", maintain_order="left")
                if both.height:
                    key = self._key(both.row(0, named=True))
                    traces.append((key, axis.of(both), both["second"].to_numpy() / axis.scale))
            parts.append(traces)
        label = re.compile(r"( \(|$)")
        return (
            label.sub(f" of flow {first}\\1", axis.label, count=1),
            label.sub(f" of flow {second}\\1", axis.label, count=1),
            parts,
        )

    def _cdf(self) -> tuple[Figure, str]:
        figure, grid = self._figure()
        axis = _axis(self.frame, self.y)
        looks, seen, most = self._groups(), set(), 0
        for axes, part in zip(grid, self._parts(), strict=True):
            for key, look in looks.items():
                runs = self._runs_of(part, key)
                if not runs:
                    continue
                seen.add(key)
                samples = [np.sort(axis.of(run)) for run in runs]
                pooled = np.sort(np.concatenate(samples))
                at = np.unique(pooled[np.linspace(0, pooled.size - 1, _CURVE_POINTS).astype(int)])
                shares = np.array([np.searchsorted(s, at, side="right") / s.size for s in samples])
                look = {**look, "label": None, "markevery": max(1, at.size // 6), "markersize": 3.5}
                # From zero: the smallest value is a step too.
                ends = np.concatenate((at[:1], at))
                axes.plot(
                    ends, np.concatenate(([0.0], shares.mean(0))), drawstyle="steps-post", **look
                )
                most = max(most, len(samples))
                if len(samples) > 1:
                    half = _halves(shares)
                    low, high = (np.clip(shares.mean(0) + sign * half, 0, 1) for sign in (-1, 1))
                    axes.fill_between(
                        at, low, high, step="post", color=look["color"], alpha=0.15, lw=0
                    )
            axes.set_ylim(0, 1.01)
        self._label(figure, grid, axis.label, "share of samples")
        self._legend(figure, looks, seen)
        return figure, f"mean over {most} runs, band: 95 % interval" if most > 1 else "one run each"

    def _runs_of(self, part: pl.DataFrame, key: tuple[Any, Any]) -> list[pl.DataFrame]:
        own = part
        for column, value in ((self.by, key[0]), ("source", key[1])):
            if column and column in part.columns:
                own = own.filter(pl.col(column).eq_missing(pl.lit(value)))
        if own.height == 0:
            return []
        return own.partition_by("run", maintain_order=True) if "run" in own.columns else [own]

    def _bar(self) -> tuple[Figure, str]:
        assert self.x is not None
        if self.by == self.x or (self.x == "case" and self.by == "law"):
            self.by = self.x
        elif self.by is not None and not _varies_within(self.frame, self.x, self.by):
            self.by = self.x  # it would only repeat what x says
        names = _values(self.frame, self.x)
        if len(names) > _MOST_BARS:
            raise UsageError(
                f"--x {self.x}: {len(names):,} values are too many bars; choose another column, "
                "or --kind time or heat"
            )
        alone = self.by == self.x
        looks = self._groups(_MOST_BARS if alone else _MOST_GROUPS)
        for (_, source), look in looks.items():
            look["hatch"] = "///" if self.sources.index(source) else ""
        # Beside each other on one name: sources, where colours repeat the names; else all looks.
        places = {key: i for i, key in enumerate(looks)}
        if alone:
            sources = [None] if self.x == "source" else self.sources
            places = {key: sources.index(key[1]) if len(sources) > 1 else 0 for key in looks}
        side_by_side = max(places.values()) + 1
        wide = 1.2 + 0.35 * len(names) * (0.7 + 0.6 * side_by_side)
        figure, grid = self._figure((min(max(4.0, wide), 12.0), 3.6))
        axis = _axis(self.frame, self.y)
        seen, most, width = set(), 0, 0.8 / side_by_side
        for axes, part in zip(grid, self._parts(), strict=True):
            for key, look in looks.items():
                for at, name in enumerate(names):
                    if alone and name != key[0]:
                        continue
                    runs = self._runs_of(part.filter(pl.col(self.x) == name), key)
                    if not runs:
                        continue
                    seen.add(key)
                    value = statistics.interval(float(np.mean(axis.of(run))) for run in runs)
                    most = max(most, value.n)
                    left = at + (places[key] - (side_by_side - 1) / 2) * width
                    axes.bar(
                        left,
                        value.mean,
                        width * 0.92,
                        color=look["color"],
                        hatch=look["hatch"],
                        edgecolor="white",
                        lw=0,
                    )
                    if value.n > 1:
                        axes.errorbar(
                            left,
                            value.mean,
                            yerr=value.half,
                            fmt="none",
                            ecolor=plot.INK,
                            capsize=2.5,
                            lw=1.0,
                        )
            words = [_in_words(None, name) for name in names]
            axes.set_xticks(range(len(names)), words)
            axes.set_xlim(-0.6, len(names) - 0.4)
            axes.tick_params(
                axis="x",
                length=0,
                labelrotation=30 if max(map(len, words)) * len(words) > 50 else 0,
            )
            axes.grid(axis="x", visible=False)
        text = all(isinstance(name, str) for name in names)
        self._label(figure, grid, "" if text else _axis(self.frame, self.x).label, axis.label)
        if not (alone and len(self.sources) == 1):
            self._legend(figure, looks, seen)
        return figure, f"mean and 95 % interval over {most} runs" if most > 1 else "one run each"

    def _heat(self) -> tuple[Figure, str]:
        assert self.x is not None
        figure, grid = self._figure((6.4, 4.0))
        sides = [_cells(self.frame, column) for column in (self.x, self.y)]
        z = _axis(self.frame, self.z) if self.z else None
        meshes, shown = [], []
        for part in self._parts():
            where = [side.place(part) for side in sides]
            shape = [side.count for side in sides]
            flat = np.ravel_multi_index((where[0], where[1]), shape)
            count = np.bincount(flat, minlength=shape[0] * shape[1]).astype(float)
            if z is None:
                cells = 100.0 * count / max(1, part.height)
            else:
                cells = np.bincount(flat, z.of(part), count.size) / np.maximum(count, 1.0)
            cells[count == 0] = np.nan
            shown.append(cells.reshape(shape).T)
        high = max(float(np.nanmax(cells)) for cells in shown)
        low = min(0.0, *(float(np.nanmin(cells)) for cells in shown))
        for axes, cells in zip(grid, shown, strict=True):
            meshes.append(
                axes.pcolormesh(
                    sides[0].edges, sides[1].edges, cells, vmin=low, vmax=high, rasterized=True
                )
            )
            axes.grid(visible=False)
            for side, set_ticks in zip(sides, (axes.set_xticks, axes.set_yticks), strict=True):
                if side.names is not None:
                    set_ticks(range(len(side.names)), side.names)
                elif side.count <= 12:  # each value, though an axis would skip some
                    set_ticks((side.edges[1:] + side.edges[:-1]) / 2)
        label = f"mean {z.label}" if z else "share of samples (%)"
        figure.colorbar(meshes[0], ax=grid, label=label)
        self._label(figure, grid, sides[0].label, sides[1].label)
        return figure, label

    def _floor(self, axes: Axes, values: NDArray[np.float64]) -> None:
        if "y" not in self.log and float(values.min()) >= 0.0:
            axes.set_ylim(bottom=0.0)

    def _label(self, figure: Figure, grid: Sequence[Axes], x: str, y: str) -> None:
        if len(grid) == 1:
            grid[0].set_xlabel(x)
            grid[0].set_ylabel(y)
        else:
            figure.supxlabel(x, fontsize=9)
            figure.supylabel(y, fontsize=9)


@dataclass(frozen=True)
class _Cells:
    """One side of a heat map: bins of a column with many values, or a cell for each value."""

    label: str
    edges: NDArray[np.floating[Any]]
    names: list[str] | None
    place: Callable[[pl.DataFrame], NDArray[np.int64]]

    @property
    def count(self) -> int:
        return self.edges.size - 1


def _cells(frame: pl.DataFrame, column: str) -> _Cells:
    values = _values(frame, column)
    if not frame[column].dtype.is_numeric():
        at = {value: i for i, value in enumerate(values)}
        edges = np.arange(len(values) + 1) - 0.5
        return _Cells(
            column, edges, values, lambda part: part[column].replace_strict(at).to_numpy()
        )
    axis = _axis(frame, column)
    if len(values) > _CELLS:
        low, high = values[0] / axis.scale, values[-1] / axis.scale
        edges = np.linspace(low, high, _CELLS + 1)
    else:  # a cell for each value, which ends half-way to the next
        each = np.asarray(values, dtype=float) / axis.scale
        middles = (each[1:] + each[:-1]) / 2
        step = float(np.diff(each).min()) if each.size > 1 else 1.0
        edges = np.concatenate(([each[0] - step / 2], middles, [each[-1] + step / 2]))
    return _Cells(
        axis.label,
        edges,
        None,
        lambda part: np.clip(np.searchsorted(edges, axis.of(part), "right") - 1, 0, edges.size - 2),
    )


def _values(frame: pl.DataFrame, column: str | None) -> list[Any]:
    """The values of a column, numbers in order, names as they come; [None] without the column."""
    if column is None or column not in frame.columns:
        return [None]
    values = frame[column].unique(maintain_order=True)
    return (values.sort() if values.dtype.is_numeric() else values).to_list()


def _varies_within(frame: pl.DataFrame, x: str, by: str) -> bool:
    return frame.select(x, by).n_unique() > frame[x].n_unique()


def _look(by: str | None, value: Any, index: int) -> tuple[str, str]:
    """Colour and marker: a law's own, or the next of the house's."""
    if by is None:
        return laws()[0].color, laws()[0].marker
    if by in ("law", "case") and isinstance(value, str):
        try:
            own = law(value.partition(",")[0])
        except LawError:  # such as a law of Linux that is none of ours
            pass
        else:
            return own.color, own.marker
    other = laws()[(index if by not in ("law", "case") else len(laws()) - 1 - index) % len(laws())]
    return other.color, other.marker


def _in_words(by: str | None, value: Any) -> str:
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return f"{by} {text}" if by is not None and not isinstance(value, str) else text


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _halves(samples: NDArray[np.float64]) -> NDArray[np.float64]:
    """Half-widths of the 95 % intervals of the columns, rows being independent runs."""
    n = samples.shape[0]
    return np.asarray(statistics.student_t(n - 1, 0.95) * samples.std(0, ddof=1) / np.sqrt(n))


def _thinned(u: NDArray[np.float64], v: NDArray[np.float64]) -> NDArray[np.int64]:
    """Indices that keep the extremes of both coordinates in each bucket, in order."""
    if u.size <= 2 * plot.TRACE_POINTS:
        return np.arange(u.size)
    keep = {0, u.size - 1}
    for part in np.array_split(np.arange(u.size), plot.TRACE_POINTS // 2):
        for values in (u[part], v[part]):
            keep |= {int(part[np.argmin(values)]), int(part[np.argmax(values)])}
    return np.array(sorted(keep))
