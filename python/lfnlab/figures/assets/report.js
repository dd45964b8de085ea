"use strict";
// Draws the traces of the page and their legends; sorts and copies its tables.
(() => {
  const { views, cases, command, where } = JSON.parse(document.getElementById("traced").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const chosen = document.getElementById("view");
  const place = document.getElementById("charts");
  const root = document.documentElement;
  const PAPER = 660; // CSS pixels: the text of a page of A4
  let charts = [];
  let drawn = [];

  // The view that the address names: some cases beside each other, or one case.
  function show() {
    const names = Object.keys(views);
    const asked = location.hash.slice(1);
    const known = asked === "all" ? "all" in views : cases[/^case-(\d+)$/.exec(asked)?.[1]];
    const name = known ? asked : names[0];
    chosen.replaceChildren(...names.map((n) => new Option(views[n].name, n)));
    const number = name === "all" ? -1 : Number(name.slice(5));
    if (!(name in views) && cases[number]) chosen.append(new Option(cases[number][0], name));
    chosen.value = name;
    document.getElementById("shown").textContent = chosen.selectedOptions[0]?.textContent ?? "";
    tellWhere(number, name in views);
    charts = views[name]?.charts ?? [];
    place.replaceChildren(...charts.map((chart) => {
      const box = Object.assign(document.createElement("div"), { className: "chart" });
      const title = Object.assign(document.createElement("h3"), { textContent: chart.title });
      const canvas = Object.assign(document.createElement("div"), { id: chart.id });
      canvas.setAttribute("role", "img");
      canvas.setAttribute("aria-label", `${chart.title} over time: ${chart.series.map((s) => s.label).join("; ")}`);
      const legend = Object.assign(document.createElement("ul"), { className: "legend" });
      box.append(title, canvas, legend);
      return box;
    }));
    draw();
  }

  // Where the samples of a case are, and how its figure is drawn if the page lacks it.
  function tellWhere(number, here) {
    const told = document.getElementById("told");
    if (!cases[number]) return told.replaceChildren();
    const [name, key] = cases[number];
    const code = (text) => Object.assign(document.createElement("code"), { textContent: text });
    const link = (table) => Object.assign(document.createElement("a"), {
      textContent: `${table}.parquet`, href: `${where}/${key}/${table}.parquet`,
    });
    const data = ["Samples: ", link("flows"), ", ", link("queues"), "."];
    const lack = [`The page has no room for the traces of ${name}. `, code(`${command} ${key}`), " draws them. "];
    told.replaceChildren(...(here ? [] : lack), ...data);
  }

  function draw() {
    for (const plot of drawn) plot.destroy();
    const css = getComputedStyle(root);
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
        points: { show: (chart, i) => chart.data[i].filter((y) => y != null).length === 1 },
      }));
      const options = {
        width: root.classList.contains("paper") ? PAPER : place.clientWidth,
        height: root.classList.contains("paper") ? 210 : 300,
        cursor: { sync: { key: "time" }, drag: { x: true, y: false }, focus: { prox: 24 } },
        focus: { alpha: 0.35 },
        scales: { x: { time: false }, y: { range: (_, low, high) => [0, high > 0 ? high * 1.05 : 1] } },
        axes: [
          { ...axis, label: "time (s)", labelSize: 20, size: 36 },
          { ...axis, size: 56, values: (_, marks) => marks.map((v) => short.format(v)) },
        ],
        hooks: {
          drawClear: [(plot) => mark(plot, chart.changes, ink)],
          setCursor: [(plot) => tell(place.nextElementSibling, chart, plot.cursor, exact)],
        },
        legend: { show: false },
        series: [{}, ...series],
      };
      const plot = new uPlot(options, [chart.t, ...chart.series.map((s) => s.y)], place);
      name(place.nextElementSibling, chart, plot);
      return plot;
    });
  }

  // One button a trace: the line as drawn, its name, and its value at the cursor.
  function name(legend, chart, plot) {
    const hidden = [...legend.querySelectorAll("button")].map((b) => b.ariaPressed === "false");
    const time = Object.assign(document.createElement("li"), { className: "time" });
    legend.replaceChildren(time, ...chart.series.map((s, i) => {
      const button = document.createElement("button");
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

  // Headings sort their table: numbers by size, names in order. A button copies it for a spreadsheet.
  function sortable(table) {
    const body = table.tBodies[0];
    const heads = [...table.tHead.rows[0].cells];
    const links = heads.map((_, i) => body.rows[0]?.cells[i]?.classList.contains("lead"));
    const cells = (row) => [...row.cells].filter((_, i) => !links[i]);
    heads.forEach((head, column) => {
      if (links[column]) return head.classList.add("lead");
      const button = document.createElement("button");
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const down = head.ariaSort === "ascending";
        for (const other of heads) other.ariaSort = null;
        head.ariaSort = down ? "descending" : "ascending";
        const rows = [...body.rows].map((row) => [key(row.cells[column].textContent), row]);
        rows.sort(([a], [b]) => (down ? -1 : 1) * compare(a, b));
        body.append(...rows.map(([, row]) => row));
      });
    });
    if (!navigator.clipboard) return;
    const copy = Object.assign(document.createElement("button"), { className: "copy", textContent: "Copy table" });
    copy.addEventListener("click", async () => {
      const lines = [...table.rows].map((row) => cells(row).map((c) => c.textContent.trim()).join("\t"));
      await navigator.clipboard.writeText(lines.join("\n"));
      copy.textContent = "Copied";
    });
    table.parentElement.after(copy);
  }

  // A number where the text begins with one, such as "9.41 ± 0.02" or "1,234"; else the text.
  function key(text) {
    const number = parseFloat(text.replaceAll(",", ""));
    return Number.isNaN(number) ? text : number;
  }

  function compare(a, b) {
    if (typeof a === typeof b) return typeof a === "number" ? a - b : a.localeCompare(b);
    return typeof a === "number" ? -1 : 1;
  }

  document.querySelectorAll("table.data:not(.claims)").forEach(sortable);
  if (!chosen) return;
  show();
  dark.addEventListener("change", draw);
  chosen.addEventListener("change", () => { location.hash = chosen.value; });
  window.addEventListener("hashchange", () => {
    if (!/^#(all|case-\d+)$/.test(location.hash)) return;
    show();
    document.getElementById("traces").scrollIntoView();
    chosen.focus({ preventScroll: true });
  });
  new ResizeObserver(() => {
    if (root.classList.contains("paper")) return;
    for (const plot of drawn) {
      plot.setSize({ width: plot.root.parentElement.clientWidth, height: 300 });
    }
  }).observe(document.body);
  // On paper traces are as wide as a page, and light.
  window.addEventListener("beforeprint", () => { root.classList.add("paper"); draw(); });
  window.addEventListener("afterprint", () => { root.classList.remove("paper"); draw(); });
})();
