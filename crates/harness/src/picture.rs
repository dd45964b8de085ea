//! A failure as a picture (SVG), and as a log that QUIC's tools read (qlog).

use std::fmt::Write;

use lfn_sim::Outcome;

use crate::measure::Measure;
use crate::scenarios::{Bound, Case};

const WIDTH: f64 = 720.0;
const LEFT: f64 = 64.0;
const PANEL: f64 = 120.0;
const GAP: f64 = 44.0;
const STYLE: &str = "text { font: 12px sans-serif; fill: #222 } .head { font-weight: bold } .bad { fill: #b00020 } \
    .axis { stroke: #999; fill: none } .grid { stroke: #ddd } polyline { fill: none; stroke-width: 1.2 } \
    .f0 { stroke: #0060b0 } .f1 { stroke: #c05000 } .t0 { fill: #0060b0 } .t1 { fill: #c05000 } .mark { stroke: #b00020; stroke-dasharray: 4 3 } \
    .page { fill: #fff } @media (prefers-color-scheme: dark) { .page { fill: #181818 } text { fill: #ddd } \
    .grid { stroke: #333 } .f0 { stroke: #6cb8ff } .f1 { stroke: #ffa860 } .t0 { fill: #6cb8ff } .t1 { fill: #ffa860 } .bad { fill: #ff8a9a } .mark { stroke: #ff8a9a } }";

/// A line of a panel: a flow's number and its points.
type Line = (usize, Vec<(f64, f64)>);

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Windows, rates and queue over time, under what failed.
pub(crate) fn svg(case: &Case, bounds: &[Bound], outcome: &Outcome, failures: &[String]) -> String {
    let lines = 2 + failures.len();
    let top = 20.0 * lines as f64 + 36.0;
    let height = top + 3.0 * (PANEL + GAP);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" role=\"img\">\n\
         <title>{name}</title><style>{STYLE}</style><rect class=\"page\" width=\"{WIDTH}\" height=\"{height}\"/>\n\
         <text class=\"head\" x=\"12\" y=\"22\">{name}</text><text x=\"12\" y=\"42\">{about}</text>\n",
        name = case.name,
        about = escaped(case.about),
    );
    for (place, failure) in failures.iter().enumerate() {
        let y = 62.0 + 20.0 * place as f64;
        let _ = writeln!(text, "<text class=\"bad\" x=\"12\" y=\"{y}\">{}</text>", escaped(failure));
    }
    let flows = &outcome.tables.flows;
    let of = |flow: usize| (0..flows.t_s.len()).filter(move |&row| flows.flow[row] as usize == flow);
    let shown = outcome.summary.flows.len().min(2);
    let windows: Vec<Line> = (0..shown)
        .map(|flow| (flow, of(flow).map(|row| (flows.t_s[row], flows.cwnd_seg[row])).collect()))
        .collect();
    let rates: Vec<Line> =
        (0..shown).map(|flow| (flow, rates(&of(flow).collect::<Vec<_>>(), outcome))).collect();
    let queues = &outcome.tables.queues;
    let waiting = (0..queues.t_s.len()).filter(|&row| queues.link[row] == 0);
    let waiting: Vec<Line> =
        vec![(0, waiting.map(|row| (queues.t_s[row], f64::from(queues.packets[row]))).collect())];
    let changes =
        if bounds.iter().any(|bound| bound.0 == Measure::Recovery) { Some(case.changes_s) } else { None };
    let end_s = outcome.summary.sim_s;
    for (place, (title, lines)) in
        [("window, packets", windows), ("delivery rate, Mbit/s", rates), ("queue, packets", waiting)]
            .iter()
            .enumerate()
    {
        let y = top + place as f64 * (PANEL + GAP);
        panel(&mut text, title, lines, end_s, changes, y);
    }
    for (flow, summary) in outcome.summary.flows.iter().enumerate().take(shown) {
        let law = escaped(&summary.law);
        let _ = writeln!(
            text,
            "<text class=\"t{flow}\" x=\"{}\" y=\"{}\" text-anchor=\"end\">flow {flow}: {law}</text>",
            WIDTH - 12.0,
            22.0 + 18.0 * flow as f64
        );
    }
    text + "</svg>\n"
}

/// Delivery rate over half seconds, in Mbit/s.
fn rates(rows: &[usize], outcome: &Outcome) -> Vec<(f64, f64)> {
    let flows = &outcome.tables.flows;
    let (mut points, mut first) = (Vec::new(), 0);
    for &row in rows {
        while flows.t_s[row] - flows.t_s[rows[first]] > 0.5 {
            first += 1;
        }
        let from = rows[first];
        let spent_s = flows.t_s[row] - flows.t_s[from];
        if spent_s > 0.0 {
            let bits = (flows.delivered_bytes[row] - flows.delivered_bytes[from]) as f64 * 8.0;
            points.push((flows.t_s[row], bits / spent_s / 1e6));
        }
    }
    points
}

fn panel(text: &mut String, title: &str, lines: &[Line], end_s: f64, change_s: Option<f64>, top: f64) {
    let most = lines.iter().flat_map(|line| &line.1).map(|point| point.1).fold(0.0, f64::max);
    let step = step(most.max(1.0));
    let most = (most / step).ceil().max(1.0) * step;
    let x = |t_s: f64| LEFT + (WIDTH - LEFT - 16.0) * t_s / end_s;
    let y = |value: f64| top + PANEL * (1.0 - value / most);
    let _ = writeln!(text, "<text x=\"12\" y=\"{}\">{title}</text>", top - 6.0);
    let mut tick = 0.0;
    while tick <= most * 1.001 {
        let at = y(tick);
        let _ = writeln!(
            text,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{tick}</text>",
            x(end_s),
            LEFT - 6.0,
            at + 4.0
        );
        tick += step;
    }
    let seconds = self::step(end_s);
    let mut tick = 0.0;
    while tick <= end_s {
        let _ = writeln!(
            text,
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{tick}{}</text>",
            x(tick),
            top + PANEL + 16.0,
            if tick == 0.0 { " s" } else { "" }
        );
        tick += seconds;
    }
    if let Some(at) = change_s {
        let (x, bottom) = (x(at), top + PANEL);
        let _ =
            writeln!(text, "<line class=\"mark\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{top}\" y2=\"{bottom}\"/>");
    }
    for (flow, points) in lines {
        let points: Vec<String> =
            points.iter().map(|&(t_s, value)| format!("{:.1},{:.1}", x(t_s), y(value))).collect();
        let _ = writeln!(text, "<polyline class=\"f{flow}\" points=\"{}\"/>", points.join(" "));
    }
}

/// A round step that divides a range into three to seven parts.
fn step(range: f64) -> f64 {
    let power = 10_f64.powf((range / 4.0).log10().floor());
    [1.0, 2.0, 5.0]
        .map(|digit| digit * power)
        .into_iter()
        .rev()
        .find(|step| range / step >= 3.0)
        .unwrap_or(power)
}

/// Metrics of the first flow's recovery (draft-ietf-quic-qlog-quic-events), as JSON text sequences.
pub(crate) fn qlog(case: &Case, outcome: &Outcome) -> String {
    let flows = &outcome.tables.flows;
    let bytes = f64::from(outcome.summary.flows[0].segment_bytes);
    let mut text = format!(
        "\u{1e}{{\"qlog_version\":\"0.3\",\"qlog_format\":\"JSON-SEQ\",\"title\":\"{}\",\"trace\":{{\"vantage_point\":\
         {{\"type\":\"server\"}},\"common_fields\":{{\"time_format\":\"relative\",\"reference_time\":0}}}}}}\n",
        case.name
    );
    for row in (0..flows.t_s.len()).filter(|&row| flows.flow[row] == 0) {
        let mut data = format!(
            "\"congestion_window\":{:.0},\"bytes_in_flight\":{:.0}",
            flows.cwnd_seg[row] * bytes,
            f64::from(flows.inflight_seg[row]) * bytes
        );
        let more = [("smoothed_rtt", flows.srtt_s[row] * 1e3), ("latest_rtt", flows.rtt_s[row] * 1e3)];
        let more = more.into_iter().chain([("pacing_rate", flows.pacing_bps[row])]);
        for (name, value) in more.filter(|one| one.1.is_finite() && one.1 > 0.0) {
            let _ = write!(data, ",\"{name}\":{value:.3}");
        }
        let time_ms = flows.t_s[row] * 1e3;
        let _ = writeln!(
            text,
            "\u{1e}{{\"time\":{time_ms:.3},\"name\":\"recovery:metrics_updated\",\"data\":{{{data}}}}}"
        );
    }
    text
}
