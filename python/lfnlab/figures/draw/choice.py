"""Which table, columns and rows a request means."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import polars as pl
import polars.selectors as cs

from lfnlab.errors import UsageError
from lfnlab.figures.draw.tables import AND, SAMPLE, TRACE
from lfnlab.results.conditions import condition, matching

if TYPE_CHECKING:
    from lfnlab.figures.draw.tables import Tables

Kind = Literal["time", "cdf", "bar", "box", "scatter", "heat", "phase"]
Log = Literal["x", "y", "xy"]
#: Values of a column that get colours unasked.
MOST_GROUPS = 12
#: Values of a column that colours and dashes can tell apart.
MOST_TOLD = 60
MOST_PANELS = 24
#: Made where flows of one law take different routes in one panel.
LAW_AND_ROUTE = "law, route"
_FLOWS = "summary.flows"
_RUN_COLUMNS = ("law", "route", "direction", "case", "seed", "run", "source")


@dataclass(frozen=True)
class Request:
    """Request for a figure; None lets the program choose.

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


def chosen(tables: Tables, request: Request) -> tuple[Kind, str, str | None, str]:
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
    name = _table_of(tables, request, wanted, timed=kind not in ("bar", "box", "scatter"))
    if kind == "scatter" and x is None:
        raise UsageError("--kind scatter: name with --x the column of the horizontal axis")
    if kind in ("box", "scatter") and request.table is None and _FLOWS in tables.names:
        # A row a flow: those of the summary are a law's flows together.
        name = _FLOWS if _has(tables.columns(_FLOWS), wanted) else name
    columns = tables.columns(name)
    if kind is None:
        kind = "time" if "t_s" in columns else "bar"
    if x is None and kind == "time":
        x = "t_s"
    if x is None and kind in ("bar", "box"):
        firsts = ("law", "case") if kind == "box" else ("case", "law")
        x = next((c for c in (*firsts, "link", "flow", "source") if c in columns), None)
        if x is None:
            raise UsageError(f"--kind {kind}: name with --x the column of {name} for the bars")
    return kind, name, x, y


def _overview(tables: Tables, request: Request) -> tuple[Kind | None, str]:
    """Kind and y where no column was named: the first that has rows."""
    firsts: dict[str | None, tuple[str, ...]] = {
        "bar": ("goodput_bps",),
        "box": ("goodput_bps",),
        "scatter": ("goodput_bps",),
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
                named = column in (*_RUN_COLUMNS, *TRACE, "t_s", request.x)
                if dtype.is_numeric() and not named:
                    return kind, column
    if request.table:
        _table_of(tables, request, [], timed=True)
    raise UsageError("nothing to draw: name a column with --y; --list shows them")


def _any_row(tables: Tables, name: str) -> bool:
    parts = [tables.frame(name)] if AND in name else [part for _, part in tables.parts(name)]
    return any(part.select(pl.first()).head(1).collect().height for part in parts)


def _wanted(request: Request, x: str | None, y: str) -> list[str]:
    conditions = [condition(text)[0] for text in request.where]
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
        names = tables.names
        # Most often a table among the first fits, and the others need not be read.
        for name in names:
            columns = tables.columns(name)
            if ("t_s" in columns) == timed and _has(columns, wanted) and _any_row(tables, name):
                return name
        names = sorted(names, key=lambda n: ("t_s" in tables.columns(n)) != timed)
    fitting = [name for name in names if _has(tables.columns(name), wanted)]
    if not fitting and request.kind in (None, "phase") and request.table is None:
        # Two tables sampled at the same times, such as windows and queues.
        pairs = itertools.permutations((n for n in names if _has(tables.columns(n), SAMPLE)), 2)
        fitting = [
            AND.join(pair)
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


def selected(
    tables: Tables, name: str, request: Request, numbers: Sequence[str], *, traced: bool
) -> tuple[pl.DataFrame, str, str]:
    """The rows that meet all conditions, with those columns that are drawn or tell rows apart.

    Traces are not averaged: if ``traced``, only the first run of each case, and the first text says
    so. The second tells how many rows have no value to draw.
    """
    columns = tables.columns(name)
    conditions = [matching(text, columns[condition(text)[0]]) for text in request.where]
    drawn = [*numbers, request.by, request.panel, "t_s", *_RUN_COLUMNS, *TRACE, *tables.factors]
    keep = list(dict.fromkeys(c for c in drawn if c and c in columns))
    nested = next((c for c in keep if columns[c].is_nested()), None)
    if nested is not None:
        raise UsageError(f"{nested} of {name} holds lists, which cannot be drawn")
    finite = {c: _finite(c, columns[c]) for c in dict.fromkeys(numbers) if columns[c].is_numeric()}
    known = pl.all_horizontal(pl.lit(True), *finite.values())
    every, note = tables.frame(name).filter(*conditions), ""
    if traced and {"case", "run", "seed", "source"} <= set(keep):
        every, note = _first_seeds(tables, name, [*conditions, known])
        every = every.filter(*conditions)
    every = every.select(keep)
    frame = every.filter(known)
    # A name takes 4 bytes a row as a category, 16 as a text: of one run at a time.
    short = (
        cs.string().cast(pl.Categorical),
        (cs.float() - cs.by_name(*finite, require_all=False)).fill_nan(None),
    )
    parts = [] if traced or AND in name else [part for _, part in tables.parts(name)]
    if len({tuple(part.collect_schema().items()) for part in parts}) == 1:
        chosen = (part.filter(*conditions).select(keep).filter(known) for part in parts)
        rows = pl.concat([part.with_columns(short).collect() for part in chosen])
    else:
        rows = frame.with_columns(short).collect()
    if rows.height == 0:
        raise UsageError(_why_empty(tables, name, request))
    return rows, note, _missing(every, finite)


def _first_seeds(
    tables: Tables, name: str, conditions: Sequence[pl.Expr]
) -> tuple[pl.LazyFrame, str]:
    """The rows of the first run of each case that has some to draw, and a note on the others."""
    keys = ["source", "case", "run"]
    parts = [] if AND in name else tables.parts(name)
    if len({tuple(part.collect_schema().items()) for _, part in parts}) != 1:
        parts = [(None, tables.frame(name))]
    # Tables of all runs may be more than the memory; their names are few.
    runs = []
    for run, part in parts:
        rows = part.filter(*conditions).select(keys)
        named = rows.unique(maintain_order=True) if run is None else rows.head(1)
        runs.append(named.collect(engine="streaming" if run is None else "in-memory"))
    every = pl.concat(runs)
    first = every.unique(("source", "case"), keep="first", maintain_order=True)
    chosen = []
    for (run, part), names in zip(parts, runs, strict=True):
        if names.join(first, on=keys, how="semi", nulls_equal=True).height:
            some = first.lazy()
            chosen.append(
                part.join(some, on=keys, how="semi", maintain_order="left", nulls_equal=True)
                if run is None
                else part
            )
    shown, of_runs = first["run"].n_unique(), every["run"].n_unique()
    note = f"the first seed of each case, {shown} of {of_runs} runs" if shown < of_runs else ""
    return pl.concat(chosen) if chosen else tables.frame(name), note


def _missing(every: pl.LazyFrame, finite: Mapping[str, pl.Expr]) -> str:
    """How many rows are not drawn since a column has no value there."""
    if not finite:
        return ""
    counts = {column: (~known).sum() for column, known in finite.items()}
    lost = every.select(**counts).collect(engine="streaming").row(0, named=True)
    said = [
        f"without {rows:,} row{'s' if rows > 1 else ''} in which {column} has no value"
        for column, rows in lost.items()
        if rows
    ]
    return ", ".join(said)


def is_traced(kind: Kind, request: Request) -> bool:
    """Whether a figure shows traces of runs that no condition or colour chose."""
    named = any(condition(text)[0] in ("seed", "run") for text in request.where)
    return kind in ("time", "phase") and request.by != "seed" and not named


def _finite(column: str, dtype: pl.DataType) -> pl.Expr:
    known = pl.col(column).is_not_null()
    if column in ("rtt_s", "srtt_s"):
        known &= pl.col(column) > 0.0  # zero until there is a sample
    return known & pl.col(column).is_finite() if dtype.is_float() else known


def _why_empty(tables: Tables, name: str, request: Request) -> str:
    """Values that the columns of the conditions contain, for an error message."""
    holds = []
    for column in dict.fromkeys(condition(text)[0] for text in request.where):
        values = tables.frame(name).select(pl.col(column).unique().sort()).collect().to_series()
        some = values.to_list() if values.len() <= 10 else [values.min(), "...", values.max()]
        holds.append(f"{column} is {', '.join(str(v) for v in some)}")
    conditions = " and ".join(request.where)
    if not conditions:
        return f'table {name} has no rows to draw: sample = "off", or the run was too short'
    return f"no row of {name} has {conditions}; {'; '.join(holds)}"


def default_by(frame: pl.DataFrame, several: bool) -> str | None:
    """The column whose values get colours: the first that has a few."""
    for column in ("probe", "link", "law", "case" if several else "flow"):
        if column in frame.columns and 2 <= frame[column].n_unique() <= MOST_GROUPS:
            return column
    if "law" in frame.columns:
        return "law"
    return "source" if several else None


def by_route(frame: pl.DataFrame, by: str | None, panel: str | None) -> pl.DataFrame | None:
    """The rows with the column :data:`LAW_AND_ROUTE`, where ``by`` hides which route a flow takes.

    None where it hides nothing.
    """
    if by not in (None, "law") or not {"law", "route"} <= set(frame.columns):
        return None
    told = [c for c in dict.fromkeys((panel, "source", "law")) if c in frame.columns]
    if (frame.group_by(told).agg(pl.col("route").n_unique())["route"] < 2).all():
        return None
    return frame.with_columns(pl.format("{}, {}", "law", "route").alias(LAW_AND_ROUTE))


def settled(
    frame: pl.DataFrame,
    factors: Sequence[str],
    x: str | None,
    by: str | None,
    panel: str | None,
    *,
    asked: bool,
) -> tuple[str | None, str | None]:
    """Colours and panels under which only seeds are left to average over.

    A mean over the buffers of a sweep says nothing, and its interval less. So what was not asked
    for takes the factor that would be averaged over.

    Args:
        frame: the rows, each with its run's seed.
        factors: of the experiment.
        x, by, panel: the columns so far.
        asked: whether ``by`` was given.

    Raises:
        UsageError: when too much differs for colours and panels.
    """
    if "seed" not in frame.columns:
        return by, panel
    told = [c for c in dict.fromkeys(("source", "seed", x, by, panel)) if c in frame.columns]
    names = [c for c in (*factors, "law", "route") if c in frame.columns and c not in told]
    if "case" in told:
        names = [c for c in names if c == "route"]
    # Few rows differ in these; to group 5.8 million rows takes 0.9 GB.
    differ = frame.lazy().select(*told, *names).unique().collect(engine="streaming")
    counts = differ.group_by(told).agg(pl.col(c).n_unique() for c in names)
    left = [c for c in names if (counts[c] > 1).any()]
    if not left:
        return by, panel
    free = ([] if by not in (None, x) else ["by"]) + ([] if panel else ["panel"])
    limits = {"by": MOST_GROUPS, "panel": MOST_PANELS}
    more = left[0] if len(left) <= len(free) else "case"
    place = next((p for p in free if frame[more].n_unique() <= limits[p]), None)
    if (place is None or len(left) > len(free)) and not asked and "case" not in told:
        # Of two factors beside the law one colour a case says both.
        return settled(frame, factors, x, "case", panel, asked=True)
    if place is None or more in told:
        raise UsageError(
            f"this would average over {', '.join(left)}, which are not replicates; name them with "
            "--x, --by or --panel, or choose with --where"
        )
    given = (more, panel) if place == "by" else (by, more)
    return settled(frame, factors, x, *given, asked=asked or place == "by")
