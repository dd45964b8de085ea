"use strict";
// Draws the traces of the page. Drag to zoom in time, double-click for all, click a law to hide it.
(() => {
  const charts = JSON.parse(document.getElementById("charts").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  let drawn = [];

  function draw() {
    for (const plot of drawn) plot.destroy();
    const css = getComputedStyle(document.documentElement);
    const ink = css.getPropertyValue("--dim").trim();
    const grid = { stroke: css.getPropertyValue("--line").trim(), width: 1 };
    const ticks = { ...grid, size: 5 };
    const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 2 });
    const exact = new Intl.NumberFormat("en", { maximumSignificantDigits: 5 });
    drawn = charts.map((chart) => {
      const place = document.getElementById(chart.id);
      const axis = { stroke: ink, grid, ticks };
      const series = chart.series.map((s) => ({
        label: s.label,
        stroke: s.color ?? css.getPropertyValue("--ink").trim(),
        dash: s.dash,
        width: 1.3,
        points: { show: false },
        value: (_, v) => (v == null ? "" : exact.format(v)),
      }));
      const options = {
        width: place.clientWidth,
        height: 300,
        cursor: { sync: { key: "time" }, drag: { x: true, y: false }, focus: { prox: 24 } },
        focus: { alpha: 0.35 },
        scales: { x: { time: false }, y: { range: (_, low, high) => [0, high > 0 ? high * 1.05 : 1] } },
        axes: [
          { ...axis, label: "time (s)", labelSize: 20, size: 36 },
          { ...axis, size: 56, values: (_, marks) => marks.map((v) => short.format(v)) },
        ],
        hooks: { drawClear: [(plot) => mark(plot, chart.changes, ink)] },
        series: [{ label: "time (s)", value: (_, v) => (v == null ? "" : v.toFixed(2)) }, ...series],
      };
      return new uPlot(options, [chart.t, ...chart.series.map((s) => s.y)], place);
    });
  }

  // A dotted line at each time at which the scenario changes something.
  function mark(plot, times, ink) {
    const { left, top, width, height } = plot.bbox;
    plot.ctx.save();
    plot.ctx.strokeStyle = ink;
    plot.ctx.setLineDash([2 * devicePixelRatio, 3 * devicePixelRatio]);
    plot.ctx.beginPath();
    for (const t of times) {
      const x = plot.valToPos(t, "x", true);
      if (x < left || x > left + width) continue;
      plot.ctx.moveTo(x, top);
      plot.ctx.lineTo(x, top + height);
    }
    plot.ctx.stroke();
    plot.ctx.restore();
  }

  draw();
  dark.addEventListener("change", draw);
  new ResizeObserver(() => {
    for (const plot of drawn) {
      plot.setSize({ width: plot.root.parentElement.clientWidth, height: 300 });
    }
  }).observe(document.body);
})();
