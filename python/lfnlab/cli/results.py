"""Commands of ``lfn`` on stored results. Heavy modules wait until they are called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from lfnlab.cli.options import Json, Names, OptionalOut, Out, print_json
from lfnlab.errors import MetricError, StoreError, UsageError
from lfnlab.printable import line, say
from lfnlab.results import output

if TYPE_CHECKING:
    from lfnlab.figures.drawing import Drawing
    from lfnlab.figures.style import Style
    from lfnlab.formats.views import View
    from lfnlab.results.cases import Factor
    from lfnlab.results.runs import Results

OK = 0
Where = Annotated[tuple[str, ...], Parameter(negative="")]
# Options of metrics by the argument that each one sets.
OPTIONS = {
    "bin_s": "--window",
    "window_s": "--window",
    "start_s": "--start",
    "end_s": "--end",
    "start_s, end_s": "--start, --end",
    "base": "--base",
}


def plot(
    source: Path,
    /,
    *more: Path,
    x: str | None = None,
    y: str | None = None,
    z: str | None = None,
    kind: Literal["time", "cdf", "bar", "box", "scatter", "heat", "phase"] | None = None,
    by: str | None = None,
    panel: str | None = None,
    where: Where = (),
    table: str | None = None,
    log: Literal["x", "y", "xy"] | None = None,
    figure: str | None = None,
    run: str | None = None,
    style: str = "report",
    set_: Annotated[tuple[str, ...], Parameter("--set", negative="")] = (),
    out: OptionalOut = None,
    list_: Annotated[bool, Parameter("--list", negative="")] = False,
) -> int:
    """Draw any table of a result, or several results in one figure.

    lfn chooses each option that is not given; `--list` shows figures, tables, columns. Examples:

        lfn plot lfn-results
        lfn plot lfn-results --list
        lfn plot lfn-results --figure goodput --out goodput.pdf
        lfn plot lfn-results --figure run --run 2
        lfn plot before after --figure goodput --where law!=reno
        lfn plot lfn-results --y goodput_bps --where "t_s>=10" --by flow
        lfn plot lfn-results --kind cdf --x rtt_s --by law --out rtt.pdf
        lfn plot lfn-results --kind bar --x law --y mean_queue_s
        lfn plot lfn-results --kind box --x rtt_s --y goodput_bps --by law
        lfn plot lfn-results --kind scatter --x rtt_s --y goodput_bps
        lfn plot lfn-results --kind cdf --x completion_s --by rtt
        lfn plot lfn-results --figure share --by law,rtt
        lfn plot lfn-results --kind heat --x t_s --y flow --z goodput_bps
        lfn plot lfn-results --kind phase --y cwnd_seg --where flow=0,1
        lfn plot lfn-results lfn-iperf3-measured --y goodput_bps
        lfn plot lfn-results/runs/KEY/queues.parquet --y packets
        lfn plot lfn-results --figure goodput --style paper --set palette=grey --out goodput.pdf

    Bars and CDFs are means over the runs (seeds) with 95 % intervals, of two to four runs with each
    run; time series and phase plots show the first seed of each case. Traces are thinned for
    display and keep their peaks. The command prints what is left out.

    Args:
        source: Results directory, directory of one run or measurement, or TABLE.parquet.
        more: Further sources for the same figure, with other dashes.
        x: Column of the horizontal axis; default `t_s`, for bars and boxes `law`.
        y: Column of the vertical axis; a CDF needs only `--x` or `--y`.
        z: Heat map: column whose mean gives the colour; default the share of samples.
        kind: Kind of figure; `phase` without `--x` draws one flow against another.
        by: Column whose values give the colour; with `--figure` the properties of a flow that
            make groups, as for `lfn table`.
        panel: Column with a panel for each value; of `--figure` a factor, such as link.rate.
        where: Condition on rows, repeatable: `flow=0,3`, `law!=reno`, `"t_s>=10"`.
        table: Table of the columns; default the first table that has all of them.
        log: Axes with a logarithmic scale.
        figure: Draw a named figure, with a panel for each source; of the other options only
            `--by`, `--panel`, `--where`, `--run`, `--style`, `--set` and `--out` apply.
        run: Of `--figure`: seed or key of the run to draw; default the first seed of some cases.
        style: `report`, `paper`, `slides`, or FILE.toml: size, font, labels, order, palette.
        set_: A key of the style, repeatable: `width=88mm`, `title="Ten flows"`, `dpi=600`.
        out: FILE.png, FILE.pdf or FILE.svg; default `figures/Y-KIND.png` in the first source.
        list_: List named figures, and tables and columns with types and units; draw nothing.
    """
    from lfnlab.figures import draw, registry
    from lfnlab.figures import style as styles
    from lfnlab.figures.drawing import check_file

    sources = (source, *more)
    if list_:
        say(registry.listing(), draw.listing(sources), sep="\n")
        return OK
    if out is not None:
        check_file("--out", out)
    asked = draw.Request(kind, x, y, z, by, panel, table, where, log)
    if figure is None and run is not None:
        raise UsageError("--run: goes with --figure; elsewhere write --where seed=2")
    if figure is not None and asked != draw.Request(where=where, by=by, panel=panel):
        raise UsageError(
            "--figure: a named figure; allowed beside it: --by, --panel, --where, --run, --style, "
            "--set, --out"
        )
    look = styles.changed(styles.read(style), styles.settings(set_), "--set")
    if figure is not None and panel is not None:
        look = replace(look, panels=panel)
    if figure is None:
        drawing = draw.draw(sources, asked, look)
    else:
        drawing = _named(sources, by, where, figure, run, look)
    _save(drawing, sources, out)
    return OK


def _named(
    sources: Sequence[Path],
    by: str | None,
    where: Sequence[str],
    figure: str,
    run: str | None,
    style: Style,
) -> Drawing:
    from lfnlab.figures import draw, registry
    from lfnlab.results.index import together

    results = together(sources)
    if by:
        results = results.by(*(name.strip() for name in by.split(",")))
    if where:
        results = results.where(*where)
    chosen = None if run is None else draw.one_of(results.runs, run)
    return registry.draw(results, figure, chosen, style)


def _save(drawing: Drawing, sources: Sequence[Path], out: Path | None) -> None:
    """Write a figure, by default beside the first source, and say what it lacks."""
    from lfnlab.results.runs import Results
    from lfnlab.results.store import EXPERIMENT

    source = sources[0]
    home = source.parent if source.suffix == ".parquet" else source / "figures"
    file = out or home / f"{drawing.name}.png"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"cannot write {file}: {error.strerror}") from None
    drawing.save(file)
    say(f"{drawing.says}\n{file}")
    for path in sources:
        if (path / EXPERIMENT).is_file() and (some := Results.load(path).completeness) is not None:
            say(f"{path}: {some}")


def table(
    directory: Path,
    /,
    *more: Path,
    baseline: str | None = None,
    power: Annotated[bool, Parameter(negative="")] = False,
    by: Names = (),
    where: Where = (),
    metric: str | None = None,
    json: Annotated[bool, Parameter(negative="")] = False,
    csv: Annotated[bool, Parameter(negative="")] = False,
    markdown: Annotated[bool, Parameter(negative="")] = False,
    latex: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Print a row for each case of a result: means over seeds with 95 % intervals.

    With `--baseline`, the differences from it, seed by seed: runs with one seed meet the same
    traffic. Examples:

        lfn table lfn-results
        lfn table lfn-results --baseline cubic
        lfn table lfn-results --baseline cubic --power
        lfn table lfn-results --baseline link.queue.size=1bdp --markdown
        lfn table lfn-results --by rtt
        lfn table lfn-results --by law,direction --metric flow_goodput_bps,fair_share
        lfn table lfn-results --where law=cubic,bbr --where "link.loss<=1e-4" --metric goodput_bps
        lfn table lfn-results --csv > results.csv
        lfn table lfn-results --latex > results.tex
        lfn table before after --baseline result=before

    Args:
        directory: Results directory, or that of a measurement.
        more: Further ones; the column `result` tells them apart.
        baseline: A law, or KEY=VALUE of a key that the runs differ in.
        power: With `--baseline`: how many seeds tell each difference from 0, with a chance of 80 %.
        by: Properties of a flow, with commas between: a row for each group of flows that agree in
            them. `law`, `route`, `direction`, `flow`, `group`, or a key of the scenario's
            `[[flow]]` such as `rtt` or `start`, as written there. Default law and route.
        where: Condition on rows, repeatable: `law=cubic,bbr`, `"utilization>=0.9"`.
        metric: Names, separated by commas; default all that `--csv` shows.
        json: The rows of `--csv` as a JSON list.
        csv: Comma-separated values: every digit, bit/s and seconds; `METRIC_ci95` is the
            half-width of the interval.
        markdown: A table in Markdown.
        latex: A `tabular` for LaTeX with the package booktabs.
    """
    from lfnlab.analysis.summary import averages, summary_table
    from lfnlab.analysis.table import csv as in_csv
    from lfnlab.analysis.table import latex as in_latex
    from lfnlab.analysis.table import markdown_of, plain
    from lfnlab.results.cases import GROUP_METRICS, LINK_METRICS, METRICS
    from lfnlab.results.index import together

    if json + csv + markdown + latex > 1:
        raise UsageError("table: allowed is one of --json, --csv, --markdown, --latex")
    if power and (baseline is None or json or csv):
        raise UsageError("--power: goes with --baseline, without --csv and --json")
    results = together([directory, *more])
    if by:
        results = results.by(*by)
    if where:
        results = results.where(*where)
    if not results.cases.rows and baseline is not None:
        raise UsageError(
            "table: these runs have no flows under test; without --baseline it shows their links"
        )
    against = None if baseline is None else _baseline(results, baseline)
    metrics = None if metric is None else [name.strip() for name in metric.split(",")]
    if csv or json:
        if not results.cases.rows:
            frame = results.links.table(metrics or LINK_METRICS)
        elif against is None:
            frame = results.table(metrics or (*METRICS, *(GROUP_METRICS if by else ())))
        else:
            frame = results.compare(against, metrics or METRICS)
        if csv:
            print(in_csv(frame), end="")
        else:
            print_json(frame.to_dicts())
        return OK
    made = summary_table(results, against, metrics, seeds=power)
    if latex:
        say(*in_latex(made), sep="\n")
    elif markdown:
        say(*markdown_of(made), sep="\n")
    else:
        say(*plain(made), sep="\n")
        say(line(averages(results)))
        if by and metrics is None:
            say("fair share: goodput of a mean flow of the group over that of all flows; 1 is fair")
        if power:
            say(
                f"seeds until the 95 % interval of case minus {baseline}, seed by seed, does not "
                "reach 0, with a chance of 80 %; in brackets: those that are there tell it"
            )
        elif against is not None:
            say(f"Δ: case minus {baseline}, seed by seed; they differ if ± does not reach 0")
    return OK


def _baseline(results: Results, text: str) -> str | dict[str, Factor]:
    """A law, or a key and that of its values which is written so."""
    key, equals, value = text.partition("=")
    if not equals:
        return text
    known = {str(row.get(key, "")): row.get(key, "") for row in results.cases.rows}
    return {key: known.get(value, value)}


def metrics(
    directory: Path | None = None,
    /,
    *,
    metric: str | None = None,
    window: str | None = None,
    start: str | None = None,
    end: str | None = None,
    base: Path | None = None,
    by: Names = (),
    list_: Annotated[bool, Parameter("--list", negative="")] = False,
    json: Json = False,
) -> int:
    """Print standard metrics of stored results.

    Nothing is simulated. Each value is a mean over seeds with its 95 % interval. A time longer than
    the run is printed as a bound, such as `> 23`. Examples:

        lfn metrics lfn-results
        lfn metrics lfn-results --metric jain-over-time,cov --window 10s
        lfn metrics lfn-results --metric queueing-delay --start 20s --end 60s
        lfn metrics mix --metric camps --base all-standard
        lfn metrics lfn-results --by rtt --metric jain,completion,time-to-share
        lfn metrics --list

    `--list` and docs/metrics.md give formula, unit and source of each metric.

    Args:
        directory: Results directory.
        metric: Names, separated by commas; default all that apply.
        window: Time scale of Jain's index, CoV and convergence; default those of 0.1, 1, 10, 60 s
            that fit.
        start: Start of the window, such as 20s; default the end of the warm-up.
        end: End of the window, such as 60s; default the end of the run.
        base: Other results with the same seeds: for `camps` the same flows, all with the standard
            law; for `harm` some of the flows alone.
        by: Properties of a flow whose values make groups, as for `lfn table`; default `law`.
        list_: List the metrics; compute nothing.
    """
    from lfnlab.analysis import measure
    from lfnlab.analysis.table import plain
    from lfnlab.results.runs import Results
    from lfnlab.scenario.quantity import seconds

    if list_:
        for name, known in measure.METRICS.items():
            said = known.documentation
            say(f"{name}: {said['meaning']}.\n    {said['Formula']}  [{said['Unit']}]")
            say(f"    {said['Source']}")
        return OK
    if directory is None:
        raise UsageError("metrics: no results directory; write for example lfn metrics lfn-results")
    try:
        found = measure.measure(
            Results.load(directory),
            [name.strip() for name in metric.split(",")] if metric else (),
            start_s=seconds("--start", start),
            end_s=seconds("--end", end),
            window_s=seconds("--window", window),
            base=None if base is None else Results.load(base),
            by=by or ("law",),
        )
    except MetricError as error:
        raise MetricError(error.wrong, OPTIONS.get(error.argument, error.argument)) from None
    if json:
        print_json(found.to_json())
        return OK
    say(*plain(measure.table(found.values)), sep="\n")
    say(found.window)
    for name, reason in found.refused.items():
        say(f"no {name}: {reason}")
    return OK


def pcap(
    directory: Path,
    /,
    *,
    out: Out,
    host: Literal["sender", "receiver"] | None = None,
    link: Names = (),
    run: str | None = None,
    after_queue: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Write the packets of a run as pcapng, for Wireshark, tshark and tcptrace.

    The scenario must record packets. Drops and retransmissions have comments. Examples:

        lfn pcap lfn-results -o run.pcapng
        lfn pcap lfn-results --host receiver -o run.pcapng
        lfn pcap lfn-results --run 2 --link forward,reverse -o run.pcapng
        tshark -r run.pcapng -q -z io,stat,1,tcp.analysis.retransmission

    Args:
        directory: Results directory, or the directory of one run.
        out: FILE.pcapng.
        host: Packets as this host of each flow sends and receives them; default its sender.
        link: Instead of a host's, the packets at the entry of these links' queues, drops
            included, with commas between. A packet that crosses two links is written twice.
        run: Seed or key of the run; default the only one.
        after_queue: Instead of a host's, the packets at the exit of the queues.
    """
    from lfnlab.figures import draw
    from lfnlab.formats import pcap

    output.refuse_others(out)
    if host is not None and (link or after_queue):
        raise UsageError("--host: a host sees no queues; allowed without --link, --after-queue")
    shown = draw.one_run(directory, run)
    packets = pcap.recorded(shown)
    view: View | None = "departure" if after_queue else host
    count = pcap.write_pcapng(out, packets, view=view, links=link)
    say(f"{count:,} packets\n{out}")
    if view is None and not link and not pcap.seen_at_hosts(packets):
        say("The run did not record them at hosts: they are as at the queues. Run it again.")
    if (rows := shown.summary.get("captured_rows") or 0) > packets.height:
        end_s = packets["t_ps"][-1] / 1e12
        say(
            f"The trace ends at {end_s:.6g} s: {packets.height:,} of {rows:,} rows were recorded; "
            "raise capture.max_rows."
        )
    return OK


def qlog(directory: Path, /, *, out: Out, run: str | None = None) -> int:
    """Write the samples of a run as qlog, for tools of QUIC.

    Each flow is a trace with windows in bytes, RTTs, pacing rate and congestion state, of TCP and
    of whole stacks alike. `lfn import qlog` and `lfn diagnose` read it. Example:

        lfn qlog lfn-results --run 2 -o run.qlog

    Args:
        directory: Results directory, or the directory of one run.
        out: FILE.qlog.
        run: Seed or key of the run; default the only one.
    """
    from lfnlab.figures import draw
    from lfnlab.formats import qlog as written

    output.refuse_others(out)
    count = written.write(out, draw.one_run(directory, run))
    say(f"{count:,} samples\n{out}")
    return OK
