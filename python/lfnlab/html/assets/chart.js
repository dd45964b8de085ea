"use strict";
// One chart of uPlot with its legend, and tables that fit, for report.js and laboratory.js.
const drawChart = (() => {
  // chart: { title, t, series: [{ label, color, dash, y }], changes: [t], top: least top of the axis,
  // lines: [{ y, label }], marks: [{ t, y, label, strong }], bands: [{ from, to, color }] }; all but t
  // and series may be missing.
  function draw(chart, place, width, height) {
    const css = getComputedStyle(document.documentElement);
    const ink = css.getPropertyValue("--dim").trim();
    const grid = { stroke: css.getPropertyValue("--line").trim(), width: 1 };
    const ticks = { ...grid, size: 5 };
    const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 2 });
    const exact = new Intl.NumberFormat("en", { maximumSignificantDigits: 5 });
    const axis = { stroke: ink, grid, ticks };
    // A line has room for its name above.
    const least = Math.max(chart.top ?? 0, ...(chart.lines ?? []).map((line) => line.y * 1.15));
    const series = chart.series.map((s) => ({
      label: s.label,
      stroke: s.color ?? css.getPropertyValue("--ink").trim(),
      dash: s.dash,
      width: 1.3,
      spanGaps: chart.spans ?? false,
      points: { show: (plot, i) => plot.data[i].filter((y) => y != null).length === 1 },
    }));
    const options = {
      width,
      height,
      cursor: { sync: { key: chart.sync ?? "time" }, drag: { x: true, y: false }, focus: { prox: 24 } },
      focus: { alpha: 0.35 },
      scales: {
        x: { time: false },
        y: { range: (_, low, high) => [0, Math.max(high * 1.05, least) || 1] },
      },
      axes: [
        { ...axis, label: "time (s)", labelSize: 20, size: 36 },
        { ...axis, size: 56, values: (_, marks) => marks.map((v) => short.format(v)) },
      ],
      hooks: {
        drawClear: [(plot) => { fill(plot, chart.bands ?? []); change(plot, chart.changes ?? [], ink); }],
        draw: [(plot) => { level(plot, chart.lines ?? [], ink); number(plot, chart.marks ?? [], css); }],
        setCursor: [(plot) => tell(place.nextElementSibling, chart, plot.cursor, exact)],
      },
      legend: { show: false },
      series: [{}, ...series],
    };
    const plot = new uPlot(options, [chart.t, ...chart.series.map((s) => s.y)], place);
    name(place.nextElementSibling, chart, plot);
    return plot;
  }

  // One button a trace: the line as drawn, its name, and its value at the cursor.
  function name(legend, chart, plot) {
    const hidden = [...legend.querySelectorAll("button")].map((b) => b.ariaPressed === "false");
    const time = Object.assign(document.createElement("li"), { className: "time" });
    legend.replaceChildren(time, ...chart.series.map((s, i) => {
      const button = Object.assign(document.createElement("button"), { type: "button" });
      button.innerHTML =
        '<svg class="swatch" viewBox="0 0 30 4" aria-hidden="true"><path d="M0 2H30" stroke-width="2.5"/></svg>';
      const line = button.querySelector("path");
      line.setAttribute("stroke", s.color ?? "currentColor");
      line.setAttribute("stroke-dasharray", s.dash.length ? s.dash.join(" ") : "none");
      button.append(s.label, document.createElement("output"));
      const show = (shown) => {
        button.setAttribute("aria-pressed", shown);
        plot.setSeries(i + 1, { show: shown });
      };
      button.addEventListener("click", () => show(button.getAttribute("aria-pressed") === "false"));
      show(!hidden[i]);
      const item = document.createElement("li");
      item.append(button);
      return item;
    }));
    tell(legend, chart, {}, null);
  }

  // Time and values at the cursor, or none.
  function tell(legend, chart, { idx, idxs }, exact) {
    if (!legend.firstChild) return;
    legend.firstChild.textContent = idx == null ? "time" : `time ${chart.t[idx].toFixed(2)} s`;
    legend.querySelectorAll("output").forEach((output, i) => {
      const value = idx == null ? null : chart.series[i].y[idxs[i + 1] ?? idx];
      output.textContent = value == null ? "" : exact.format(value);
    });
  }

  // A coloured ground for each time.
  function fill(plot, bands) {
    const { left, top, width, height } = plot.bbox;
    plot.ctx.save();
    plot.ctx.globalAlpha = 0.3;
    for (const { from, to, color } of bands) {
      const begin = Math.max(plot.valToPos(from, "x", true), left);
      const end = Math.min(plot.valToPos(to, "x", true), left + width);
      plot.ctx.fillStyle = color;
      if (end > begin) plot.ctx.fillRect(begin, top, end - begin, height);
    }
    plot.ctx.restore();
  }

  // A dotted line at each time at which the scenario changes something.
  function change(plot, times, ink) {
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

  // A dotted line and its name at each level.
  function level(plot, lines, ink) {
    const { left, top, width } = plot.bbox;
    const { ctx } = plot;
    ctx.save();
    ctx.strokeStyle = ctx.fillStyle = ink;
    ctx.setLineDash([2 * devicePixelRatio, 3 * devicePixelRatio]);
    ctx.font = `${12 * devicePixelRatio}px system-ui, sans-serif`;
    ctx.textAlign = "right";
    for (const { y, label } of lines) {
      const at = plot.valToPos(y, "y", true);
      ctx.beginPath();
      ctx.moveTo(left, at);
      ctx.lineTo(left + width, at);
      ctx.stroke();
      const below = at - 16 * devicePixelRatio < top;
      ctx.textBaseline = below ? "top" : "bottom";
      ctx.fillText(label, left + width - 4 * devicePixelRatio, at + (below ? 3 : -2) * devicePixelRatio);
    }
    ctx.restore();
  }

  // Numbers in circles, to which a text refers.
  function number(plot, marks, css) {
    const { left, top, width, height } = plot.bbox;
    const { ctx } = plot;
    const unit = devicePixelRatio;
    ctx.save();
    ctx.textAlign = "center";
    ctx.textBaseline = "middle";
    for (const { t, y, label, strong } of marks) {
      const x = plot.valToPos(t, "x", true);
      const radius = (strong ? 13 : 9) * unit;
      if (x < left - 1 || x > left + width + 1) continue;
      const inside = (value, low, high) => Math.min(Math.max(value, low + radius), high - radius);
      const at = [inside(x, left, left + width), inside(plot.valToPos(y, "y", true), top, top + height)];
      ctx.fillStyle = css.getPropertyValue("--ink").trim();
      ctx.strokeStyle = css.getPropertyValue("--page").trim();
      ctx.lineWidth = 2 * unit;
      ctx.beginPath();
      ctx.arc(...at, radius, 0, 2 * Math.PI);
      ctx.fill();
      ctx.stroke();
      ctx.fillStyle = css.getPropertyValue("--page").trim();
      ctx.font = `bold ${(strong ? 15 : 11) * unit}px system-ui, sans-serif`;
      ctx.fillText(label, at[0], at[1] + unit / 2);
    }
    ctx.restore();
  }

  return draw;
})();

// A table that does not fit, even with its texts wrapped, shows each row as a block of
// named cells, so that nothing is cut.
const fitTables = () => {
  for (const table of document.querySelectorAll(".scroll > table.data:not(.claims)")) {
    // A long key may break behind its dots and underscores.
    const heads = [...(table.tHead?.rows[0]?.cells ?? [])].map((head) => head.textContent.replace(/(?<=[._])/g, "\u200b"));
    for (const row of table.tBodies[0]?.rows ?? []) {
      [...row.cells].forEach((cell, i) => { cell.dataset.label = heads[i] ?? ""; });
    }
    table.classList.remove("stacked");
    const { scrollWidth, clientWidth } = table.parentNode;
    table.classList.toggle("stacked", scrollWidth > clientWidth + 1);
  }
};
