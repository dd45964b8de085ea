"use strict";
// Seven lessons. Each sets one or two settings, and its sentences point at places of the curves, found in the run.
// at(report) gives { chart, t, y } or null; bench is 0 for setting A, 1 for B.
const LESSONS = (() => {
  const BASE = { rate: "100Mbit/s", rtt: "100ms", duration: "30s" };

  // The point of a curve where `better` prefers it, among those from one time to another.
  function extreme(ts, ys, better, from = 0, to = Infinity) {
    let found = null;
    ts.forEach((t, i) => {
      if (ys[i] != null && t >= from && t <= to && (found === null || better(ys[i], found.y))) found = { t, y: ys[i] };
    });
    return found;
  }
  const most = (a, b) => a > b;
  const least = (a, b) => a < b;
  const on = (chart, point) => (point ? { chart, ...point } : null);
  const cwnd = (flow, better, from, to) => (r) => on("cwnd", extreme(r.t, r.flows[flow]?.cwnd_seg ?? [], better, from, to));
  const onTheWay = (t) => (r) => on("cwnd", near(r.t, r.flows[0]?.inflight_seg ?? [], t, 1));
  const queue = (better, from, to) => (r) => on("queue", extreme(r.t, r.queues[0] ?? [], better, from, to));
  const goodput = (flow, t) => (r) => on("goodput", near(r.goodput_t, r.flows[flow]?.goodput_bps ?? [], t, 1e6));
  const probe = (flow, t) => (r, p) => on("probe", near(r.t, r.flows[flow]?.probes[p] ?? [], t, 1));
  function near(ts, ys, t, unit) {
    const i = ts.findIndex((at, k) => at >= t && ys[k] != null);
    return i < 0 ? null : { t: ts[i], y: ys[i] / unit };
  }
  // A congestion event of the first flow that reduced its window: the first after a time.
  const loss = (after, flow = 0) => (r) => {
    const event = r.events.find((e) => e.kind < 3 && r.flows[flow] && e.flow === r.flows[flow].id && e.t_s >= after);
    return event ? { chart: "cwnd", t: event.t_s, y: event.cwnd_before_seg } : null;
  };

  return [
    {
      title: "What a BDP is",
      intro: "100 Mbit/s × 100 ms is 1.25 MB: so much is on the way when the link is busy and no packet waits. A window is a limit on what is on the way.",
      a: { ...BASE, law: "reno", window: "400", duration: "10s" },
      b: { ...BASE, law: "reno", window: "1200", duration: "10s" },
      points: [
        { bench: 0, at: onTheWay(4), text: "A may have 400 segments on the way, whatever its window. That is half of the dotted line, the BDP." },
        { bench: 0, at: goodput(0, 6), text: "So A has half of the link. More buffer, or a better law, would change nothing." },
        { bench: 1, at: goodput(0, 6), text: "B may have 1,200. The link is full: more than a BDP brings no more goodput." },
        { bench: 1, at: queue(most, 5), text: "What exceeds the BDP waits in the queue. It brings delay only. Move the window limit to 826 segments: the link is full, and the queue almost empty." },
      ],
    },
    {
      title: "Reno's climb, and the answers to it",
      intro: "Reno adds one segment in each round trip, and halves its window at a loss. On a long fat path the way back is long.",
      a: { ...BASE, law: "reno", rate: "1Gbit/s", buffer: "0.1bdp", duration: "100s" },
      b: { ...BASE, law: "cubic", rate: "1Gbit/s", buffer: "0.1bdp", duration: "100s" },
      points: [
        { bench: 0, at: loss(0), text: "The first loss ends Reno's slow start." },
        { bench: 0, at: cwnd(0, most, 90), text: "At the end of the run Reno is still far below the BDP. Its growth does not depend on the rate: ten times the rate takes ten times as long." },
        { bench: 0, at: goodput(0, 50), text: "The distance to the dotted line is unused capacity." },
        { bench: 1, at: cwnd(0, most, 40), text: "CUBIC grows with the time since the loss, not with the number of round trips, and gives up 30 % instead of half. Choose htcp, scalable, hstcp or bbr in B for other answers." },
      ],
    },
    {
      title: "HTCP-BE's estimate",
      intro: "H-TCP climbs fast, and gives up between a fifth and half at a loss. HTCP-BE measures the bandwidth that it gets, and reduces its window to bandwidth × least RTT: the BDP, without the queue.",
      a: { ...BASE, law: "htcp", rate: "500Mbit/s", buffer: "0.1bdp", duration: "60s", probe: "beta" },
      b: { ...BASE, law: "htcp-be", rate: "500Mbit/s", buffer: "0.1bdp", duration: "60s", probe: "bwe_Bps" },
      points: [
        { bench: 0, at: cwnd(0, least, 20, 60), text: "H-TCP keeps at most 0.8 of its window. With this small buffer that is below the BDP, and the link idles until the window is back." },
        { bench: 1, at: cwnd(0, least, 20, 60), text: "HTCP-BE falls to the BDP: the queue empties, and the link stays full." },
        { bench: 1, at: probe(0, 30), text: "Its estimate, in bytes per second. A full link of 500 Mbit/s gives 60 million: the payload without headers." },
        { bench: 1, at: cwnd(0, least, 1, 8), text: "The price: the loss of slow start comes before the estimate has settled, so the window falls far too low. Raise the random loss in both to see how an estimate takes losses that no queue caused." },
      ],
    },
    {
      title: "RTT unfairness",
      intro: "Two flows share the link. A window grows once in a round trip, so the flow with the shorter one grows more often.",
      a: { ...BASE, law: "reno", rtt: "40ms", second: "reno", rtt2: "160ms", start2: "0s", buffer: "0.5bdp", duration: "60s" },
      b: { ...BASE, law: "hybla", rtt: "40ms", second: "hybla", rtt2: "160ms", start2: "0s", buffer: "0.5bdp", duration: "60s" },
      points: [
        { bench: 0, at: goodput(0, 45), text: "The flow of 40 ms has most of the link." },
        { bench: 0, at: goodput(1, 45), text: "The flow of 160 ms has what is left: it needs four times the window for the same rate, and grows a quarter as often." },
        { bench: 1, at: goodput(1, 45), text: "Hybla grows as if its RTT were 25 ms, so both flows gain alike in a second. Now the far flow has more than half: the remedy is too strong here. Try cubic in B, or equal RTTs in A." },
      ],
    },
    {
      title: "Bufferbloat, and AQM",
      intro: "A law that waits for losses fills any buffer. A buffer of four BDP makes the RTT five times as long. Active queue management drops before the buffer is full.",
      a: { ...BASE, rate: "50Mbit/s", rtt: "40ms", law: "cubic", buffer: "4bdp", aqm: "drop-tail" },
      b: { ...BASE, rate: "50Mbit/s", rtt: "40ms", law: "cubic", buffer: "4bdp", aqm: "codel" },
      points: [
        { bench: 0, at: queue(most), text: "The queue is full: a new packet waits four round trips. Calls and games suffer, the download gains nothing." },
        { bench: 1, at: queue(most, 0, 4), text: "CoDel lets a burst pass." },
        { bench: 1, at: queue(most, 10), text: "Then it drops a packet whenever the wait stayed above 5 ms for 100 ms, and the queue stays short." },
        { bench: 1, at: goodput(0, 20), text: "Goodput is almost the same. Choose ECN in B: the packets are marked instead of dropped, and nothing is sent again." },
      ],
    },
    {
      title: "VCP: two bits, three answers",
      intro: "VCP asks the router. Two bits in each packet say whether its load is low, high, or above capacity. The sender multiplies, adds, or cuts by an eighth.",
      a: { ...BASE, law: "vcp", rtt: "80ms", second: "vcp", start2: "20s", buffer: "1bdp", duration: "60s", probe: "load" },
      b: { ...BASE, law: "reno", rtt: "80ms", second: "reno", start2: "20s", buffer: "1bdp", duration: "60s" },
      points: [
        { bench: 0, at: cwnd(0, most, 3, 9), text: "Low load (1): the window grows by a constant factor." },
        { bench: 0, at: probe(0, 22), text: "High load (2): it grows by a constant amount." },
        { bench: 0, at: cwnd(1, most, 30, 60), text: "Overload (3): every flow gives up an eighth. Adding and cutting brings the second flow to its share." },
        { bench: 0, at: queue(most, 10, 60), text: "The queue stays almost empty, and nothing is lost." },
        { bench: 1, at: queue(most, 5, 60), text: "Reno learns of the load from losses, so it fills the queue first." },
      ],
    },
    {
      title: "L4S: two bits, two queues",
      intro: "Prague says in two bits of each packet that it answers the extent of marks. DualPI2 gives such packets a short queue of their own and marks them early; all others wait in the Classic queue, which drops more rarely.",
      a: { ...BASE, law: "prague", rtt: "20ms", second: "cubic", start2: "0s", buffer: "8bdp", aqm: "dualpi2", probe: "alpha" },
      b: { ...BASE, law: "prague", rtt: "20ms", second: "cubic", start2: "0s", buffer: "8bdp", aqm: "codel", ecn: "1" },
      points: [
        { bench: 0, at: goodput(0, 20), text: "The queue knows no flows. Prague gets somewhat more than half of the link, since its packets are marked with twice the root of the probability with which CUBIC's are dropped." },
        { bench: 0, at: queue(most, 15), text: "Nearly all packets that wait are CUBIC's, for 15 ms. Prague's wait less than one." },
        { bench: 0, at: probe(0, 20), text: "Prague's estimate of the fraction marked, about two percent. At a mark the window falls by half of it, so that two or three marks come in each round trip at any rate." },
        { bench: 1, at: goodput(0, 20), text: "B is one queue that marks both alike. CUBIC gives up 30 % at a mark, Prague a little, and takes nearly all: never mark ECT(1) like the others." },
      ],
    },
  ];
})();
