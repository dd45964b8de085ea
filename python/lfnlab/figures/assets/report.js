"use strict";
// Shows the traces of the page; sorts and copies its tables.
(() => {
  const { views, cases, command, where, tables } = JSON.parse(document.getElementById("traced").textContent);
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
    const data = ["Samples: ", link(tables[0]), ", ", link(tables[1]), "."];
    const lack = [`The page has no room for the traces of ${name}. `, code(`${command} ${key}`), " draws them. "];
    told.replaceChildren(...(here ? [] : lack), ...data);
  }

  function draw() {
    for (const plot of drawn) plot.destroy();
    const paper = root.classList.contains("paper");
    drawn = charts.map((chart) => {
      const place = document.getElementById(chart.id);
      return drawChart(chart, place, paper ? PAPER : place.clientWidth, paper ? 210 : 300);
    });
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
      const lines = [...table.rows].map((row) => cells(row).map((c) => c.textContent.trim().replaceAll("\u00a0", " ")).join("\t"));
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
  fitTables();
  window.addEventListener("resize", fitTables);
  document.querySelectorAll("details").forEach((part) => part.addEventListener("toggle", fitTables));
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
