"use strict";
// The page of the laboratory: settings, their scenarios, runs in a worker, curves and lessons.
const laboratory = (() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  const byId = (id) => document.getElementById(id);
  const make = (tag, more = {}, ...children) => {
    const element = Object.assign(document.createElement(tag), more);
    element.append(...children);
    return element;
  };

  // What the controls of a setting say, as texts. `toml` holds a scenario that was edited instead.
  const DEFAULTS = {
    law: "cubic", flows: "1", rate: "1Gbit/s", rtt: "100ms", buffer: "1bdp", loss: "0", aqm: "drop-tail", ecn: "", window: "",
    second: "", start2: "10s", rtt2: "", background: "0", duration: "30s", seed: "1", probe: "", toml: "",
  };
  const STEPS = {
    rate: ["1Mbit/s", "2Mbit/s", "5Mbit/s", "10Mbit/s", "20Mbit/s", "50Mbit/s", "100Mbit/s", "200Mbit/s", "500Mbit/s", "1Gbit/s",
      "2Gbit/s", "5Gbit/s", "10Gbit/s"],
    rtt: ["1ms", "2ms", "5ms", "10ms", "20ms", "40ms", "60ms", "80ms", "100ms", "120ms", "160ms", "200ms", "300ms", "500ms"],
    buffer: ["0.02bdp", "0.05bdp", "0.1bdp", "0.2bdp", "0.5bdp", "1bdp", "2bdp", "4bdp", "8bdp"],
    loss: ["0", "1e-7", "1e-6", "1e-5", "0.0001", "0.001", "0.01", "0.1"],
    duration: ["5s", "10s", "20s", "30s", "60s", "100s", "200s", "300s"],
    start2: ["0s", "2s", "5s", "10s", "15s", "20s", "30s", "60s"],
  };
  STEPS.rtt2 = ["", ...STEPS.rtt];
  const MARKING = ["red", "codel", "fq-codel", "pie"];
  const MOST_LINK = 30000; // characters of a scenario in an address

  let laws = [];
  let module = null;
  const benches = [];
  let lesson = -1;
  let strong = null;

  // The part of the page that another page shows: few controls, two charts, and curves that are drawn over 4 s.
  const isPicture = () => root.classList.contains("picture");

  // ---- a setting as TOML, command, Python

  const text = (value) => JSON.stringify(value);
  const routerOf = (law) => laws.find((known) => known.name === law.split(":")[0])?.router;

  function tomlOf(s) {
    if (s.toml) return s.toml;
    const ecn = s.ecn && MARKING.includes(s.aqm);
    const router = routerOf(s.law) ?? (s.second && routerOf(s.second));
    const flow = (law, rtt, more) => [
      "", "[[flow]]", `law = ${text(law)}`, `rtt = ${text(rtt)}`, ...more, ...(ecn ? ["ecn = true"] : []),
      ...(s.window ? [`receive_window = ${text(`${s.window} packets`)}`] : []),
    ];
    return [
      "schema = 1", `duration = ${text(s.duration)}`, ...(s.seed === "1" ? [] : [`seed = ${s.seed}`]),
      "", "[link]", `rate = ${text(s.rate)}`,
      `queue = { kind = ${text(s.aqm)}, size = ${text(s.buffer)}${MARKING.includes(s.aqm) ? `, ecn = ${Boolean(ecn)}` : ""} }`,
      ...(s.loss === "0" ? [] : [`loss = ${s.loss}`]),
      ...(router ? [`router = { kind = ${text(router)} }`] : []),
      ...flow(s.law, s.rtt, s.flows === "1" ? [] : [`count = ${s.flows}`]),
      ...(s.second ? flow(s.second, s.rtt2 || s.rtt, [`start = ${text(s.start2)}`]) : []),
      ...(s.background === "0" ? [] : ["", "[background]", `level = ${s.background}`]),
      "",
    ].join("\n");
  }

  const COPIES = {
    toml: (toml) => toml,
    command: (toml) => `lfn run - <<'END'\n${toml.replace(/\n*$/, "\n")}END\n`,
    python: (toml) => {
      const quoted = toml.replaceAll("\\", "\\\\").replaceAll('"""', '\\"\\"\\"');
      return `from lfnlab import Case, Scenario, execute\n\nscenario = Scenario.from_toml("""\\\n${quoted}""")\n` +
        'results = execute([Case(scenario)], out="lfn-results")\nprint(results.frame())\n';
    },
  };

  async function copy(words, said) {
    try {
      await navigator.clipboard.writeText(words);
    } catch {
      const area = make("textarea", { value: words });
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    byId("said").textContent = said;
  }

  // ---- the address holds the state

  function address() {
    const words = new URLSearchParams();
    if (isPicture()) words.set("picture", "1");
    if (lesson >= 0) words.set("lesson", lesson + 1);
    benches.forEach((bench, i) => {
      const { toml, ...controls } = bench.setting;
      const said = toml ? { toml } : controls;
      for (const [key, value] of Object.entries(said)) {
        if (value !== DEFAULTS[key]) words.set(`${"ab"[i]}.${key}`, value);
      }
    });
    if (benches.length > 1) words.set("two", "1");
    return `#${words}`;
  }

  function remember() {
    const now = address();
    if (now.length > MOST_LINK) return;
    if (now !== location.hash) history.replaceState(null, "", now);
  }

  // The settings that an address names, and its lesson.
  function remembered() {
    const words = new URLSearchParams(location.hash.slice(1));
    const settings = [{ ...DEFAULTS }, { ...DEFAULTS }];
    for (const [name, value] of words) {
      const [place, key] = name.split(".");
      if (["a", "b"].includes(place) && Object.hasOwn(DEFAULTS, key)) settings["ab".indexOf(place)][key] = value;
    }
    const number = Number(words.get("lesson")) - 1;
    const known = LESSONS[number];
    const two = words.has("two");
    const untouched = ![...words.keys()].some((name) => name.includes(".")) && known;
    if (untouched) return { settings: [known.a, known.b].map((own) => ({ ...DEFAULTS, ...own })), lesson: number };
    return { settings: two ? settings : settings.slice(0, 1), lesson: known ? number : -1 };
  }

  // ---- controls

  const CONTROLS = [
    { key: "law", label: "Law", kind: "law" },
    { key: "flows", label: "Flows", kind: "number", low: 1, high: 50 },
    { key: "rate", label: "Rate", kind: "steps" },
    { key: "rtt", label: "RTT", kind: "steps" },
    { key: "buffer", label: "Buffer", kind: "steps", show: (v) => v.replace("bdp", " BDP") },
    { key: "loss", label: "Random loss", kind: "steps" },
    { key: "aqm", label: "Queue", kind: "choice", choices: [
      ["drop-tail", "drop-tail"], ["drop-head", "drop-head"], ["red", "RED"], ["codel", "CoDel"], ["fq-codel", "FQ-CoDel"], ["pie", "PIE"], ["dualpi2", "DualPI2"]] },
    { key: "ecn", label: "ECN: mark, not drop", kind: "check" },
    { key: "second", label: "Second flow", kind: "law", none: "none" },
    { key: "start2", label: "Its start", kind: "steps" },
    { key: "rtt2", label: "Its RTT", kind: "steps", show: (v) => (v ? spaced(v) : "same") },
    { key: "background", label: "Background", kind: "choice", choices: [["0", "none"], ["1", "10 % + long flows"], ["2", "25 % + long flows"], ["3", "40 % + long flows"]] },
    { key: "window", label: "Window limit (segments)", kind: "number", low: 1, high: 10000000, empty: "none" },
    { key: "duration", label: "Duration", kind: "steps" },
    { key: "seed", label: "Seed", kind: "number", low: 0, high: 1000000 },
  ];
  const spaced = (value) => value.replace(/(?<=\d)(?=[a-zA-Z])/, " ");

  function lawChoices(select, none) {
    if (none) select.append(new Option(none, ""));
    const families = { loss: "by loss", delay: "by delay", rate: "by rate", ecn: "by marks", router: "by routers" };
    for (const [family, said] of Object.entries(families)) {
      const group = make("optgroup", { label: said });
      for (const law of laws.filter((known) => known.family === family)) group.append(new Option(law.name, law.name));
      select.append(group);
    }
  }

  // One control: its element, and how it shows a value.
  function control(spec, bench) {
    const id = `${bench.place}-${spec.key}`;
    const label = make("label", { htmlFor: id });
    const change = (value) => bench.change(spec.key, value);
    if (spec.kind === "steps") {
      const input = make("input", { type: "range", id, min: 0, step: 1 });
      const output = make("output", {});
      output.htmlFor = id;
      const say = spec.show ?? spaced;
      let steps = STEPS[spec.key];
      const tell = (value) => {
        output.textContent = say(value);
        input.setAttribute("aria-valuetext", say(value));
      };
      input.addEventListener("input", () => { tell(steps[input.value]); change(steps[input.value]); });
      label.append(spec.label, " ", output, input);
      return { label, show: (value) => {
        steps = STEPS[spec.key].includes(value) ? STEPS[spec.key] : [...STEPS[spec.key], value];
        input.max = steps.length - 1;
        input.value = steps.indexOf(value);
        tell(value);
      } };
    }
    if (spec.kind === "check") {
      const input = make("input", { type: "checkbox", id });
      input.addEventListener("change", () => change(input.checked ? "1" : ""));
      label.className = "check";
      label.append(input, spec.label);
      return { label, input, show: (value) => { input.checked = Boolean(value); } };
    }
    if (spec.kind === "number") {
      const input = make("input", { type: "number", id, min: spec.low, max: spec.high, step: 1, placeholder: spec.empty ?? "" });
      input.addEventListener("input", () => {
        if (input.checkValidity() && (input.value || spec.empty)) change(input.value);
      });
      label.append(spec.label, input);
      return { label, show: (value) => { if (input.value !== value) input.value = value; } };
    }
    const select = make("select", { id });
    if (spec.kind === "law") lawChoices(select, spec.none);
    else select.append(...spec.choices.map(([value, said]) => new Option(said, value)));
    select.addEventListener("change", () => change(select.value));
    label.append(spec.label, select);
    return { label, show: (value) => {
      if (![...select.options].some((option) => option.value === value)) select.append(new Option(value, value));
      select.value = value;
    } };
  }

  // ---- a setting with its run

  class Bench {
    constructor(place, setting) {
      this.place = place;
      this.setting = setting;
      this.report = null;
      this.error = "";
      this.plots = [];
      this.id = 0;
      this.waiting = [];
      const part = byId("bench").content.cloneNode(true);
      this.section = part.querySelector("section");
      this.find = (selector) => this.section.querySelector(selector);
      this.section.setAttribute("aria-label", `Setting ${place}`);
      byId("benches").append(part);
      this.worker = new Worker(data.worker);
      this.worker.onmessage = (event) => this.hear(event.data);
      this.worker.onerror = (event) => { event.preventDefault(); this.fail(`the worker stopped: ${event.message}`); };
      this.worker.postMessage({ module });
      this.controls = {};
      const form = this.find("form");
      form.addEventListener("submit", (event) => event.preventDefault());
      for (const spec of CONTROLS) form.append((this.controls[spec.key] = control(spec, this)).label);
      this.controls.probe = this.probeControl(form);
      this.note = make("p", { className: "note" });
      form.append(this.note);
      this.find(".cancel").addEventListener("click", () => this.cancel());
      for (const button of this.section.querySelectorAll(".copies button")) {
        button.addEventListener("click", () => copy(COPIES[button.dataset.as](tomlOf(this.setting)), `Setting ${this.place}: ${button.textContent} copied.`));
      }
      const area = this.find("textarea");
      area.addEventListener("input", () => this.change("toml", area.value));
      this.find(".back").addEventListener("click", () => this.change("toml", ""));
      this.show();
      this.run();
    }

    // The variables of the first law, to draw one of them.
    probeControl(form) {
      const select = make("select", { id: `${this.place}-probe` });
      select.addEventListener("change", () => {
        this.setting.probe = select.value;
        remember();
        drawAll();
      });
      const label = make("label", { htmlFor: select.id }, "Draw the law's variable", select);
      form.append(label);
      return { label, show: (value) => {
        const probes = laws.find((law) => law.name === this.setting.law.split(":")[0])?.probes ?? [];
        select.replaceChildren(new Option("none", ""), ...probes.map((probe) => new Option(probe, probe)));
        select.value = probes.includes(value) ? value : "";
        select.disabled = probes.length === 0;
      } };
    }

    change(key, value) {
      this.setting = { ...this.setting, [key]: value };
      this.show(key);
      remember();
      clearTimeout(this.later);
      this.later = setTimeout(() => this.run(), key === "toml" ? 400 : 60);
    }

    // The controls as the setting says; not the one that is being used.
    show(used) {
      const { setting } = this;
      const edited = Boolean(setting.toml);
      for (const [key, { show }] of Object.entries(this.controls)) if (key !== used) show(setting[key]);
      this.find("h2").textContent = benches.length > 1 || this.place === "B" ? `Setting ${this.place}` : "";
      this.find("h2").hidden = !this.find("h2").textContent;
      this.section.classList.toggle("edited", edited);
      this.find("form").hidden = edited;
      if (edited) this.find("details").open = true;
      this.find(".back").hidden = !edited;
      if (used !== "toml" || !edited) this.find("textarea").value = tomlOf(setting);
      this.controls.ecn.input.disabled = !MARKING.includes(setting.aqm);
      for (const key of ["start2", "rtt2"]) this.controls[key].label.hidden = !setting.second;
      const router = routerOf(setting.law) ?? (setting.second && routerOf(setting.second));
      this.note.textContent = router ? `The link has a router for ${router}.` : "";
    }

    run() {
      clearTimeout(this.later);
      this.id += 1;
      this.find(".results").classList.add("old");
      this.worker.postMessage({ id: this.id, text: tomlOf(this.setting) });
      clearTimeout(this.patience);
      // A short run needs no bar.
      this.patience = setTimeout(() => this.busy(true), 250);
    }

    busy(is) {
      clearTimeout(this.patience);
      this.find("progress").hidden = this.find(".cancel").hidden = !is;
      if (is) this.find(".told").textContent = "Simulating";
      else this.find("progress").value = 0;
    }

    cancel() {
      this.id += 1;
      this.worker.postMessage({ id: null });
      this.busy(false);
      this.find(".told").textContent = "Cancelled; the curves are those of the run before.";
      this.settle();
    }

    hear(message) {
      if (message.laws || message.id !== this.id) return;
      if (message.progress !== undefined) this.find("progress").value = message.progress;
      else if (message.error !== undefined) this.fail(message.error);
      else this.take(message.report, message.ms);
    }

    fail(error) {
      this.busy(false);
      this.error = error;
      this.find(".error").textContent = `lfn: ${error}`;
      this.find(".error").hidden = false;
      this.find(".told").textContent = this.report ? "The curves are those of the run before." : "";
      this.settle();
    }

    take(report, ms) {
      this.busy(false);
      this.error = "";
      this.find(".error").hidden = true;
      this.report = report;
      const { summary } = report;
      this.find(".results").classList.remove("old");
      this.find(".told").replaceChildren(
        `${summary.sim_s} s simulated in ${(ms / 1000).toFixed(2)} s, ${summary.data_packets_delivered.toLocaleString("en")} packets. Hash `,
        make("code", { className: "hash", textContent: summary.hash }));
      this.numbers();
      drawAll();
      if (isPicture() && !this.hasPlayed) {
        this.hasPlayed = true;
        play();
        parent.postMessage("drawn", "*");
      }
      this.settle();
    }

    settle() {
      for (const done of this.waiting.splice(0)) done();
    }

    close() {
      this.worker.terminate();
      clearTimeout(this.later);
      for (const plot of this.plots) plot.destroy();
      this.section.remove();
      this.settle();
    }

    numbers() {
      const { summary } = this.report;
      const head = ["flow", "goodput (Mbit/s)", "mean cwnd", "largest cwnd", "sent again", "reductions", "timeouts"];
      // What is not known, such as the window of a law that keeps none, has no digits.
      const digits = (value, most = 1) => value === null ? "–" : value.toLocaleString("en", { maximumFractionDigits: most });
      const shown = this.report.flows.map(({ id }) => summary.flows.find((flow) => flow.id === id));
      const rows = shown.map((flow, i) => [
        labelOf(this, i), digits(flow.goodput_bps === null ? null : flow.goodput_bps / 1e6, 2), digits(flow.mean_cwnd_segments), digits(flow.max_cwnd_segments),
        digits(flow.retransmits), digits(flow.loss_events), digits(flow.timeouts),
      ]);
      const cells = (tag, values) => values.map((value, i) =>
        make(tag, { textContent: value, className: i ? "" : "text", ...(tag === "th" ? { scope: "col" } : {}) }));
      this.find("table").replaceChildren(
        make("thead", {}, make("tr", {}, ...cells("th", head))),
        make("tbody", {}, ...rows.map((row) => make("tr", {}, ...cells("td", row)))));
      fitTables();
      const link = summary.links[0];
      const left = summary.flows.length - shown.length;
      this.find(".links").textContent = `${left ? `${left} more flows are not shown. ` : ""}Link ${link.id}: ` +
        `${digits(link.utilization * 100)} % used, mean wait ${digits(link.mean_queue_s * 1e3, 2)} ms, ` +
        `${digits(link.drops)} dropped, ${digits(link.marks)} marked, ${digits(link.random_losses)} lost at random.` +
        (summary.flows.length > 1 && summary.jain !== null ? ` Jain's index ${digits(summary.jain, 3)}.` : "") +
        (summary.background && summary.links.length === 2 ? ` Background: ${summary.background.goodput_bps.map((bps, i) =>
          digits(100 * bps / summary.links[i].rate_bps)).join(" % of the rate forward, ")} % in reverse.` : "");
    }
  }

  // ---- curves

  const DASHES = [[], [8, 3], [2, 2], [9, 2, 2, 2], [4, 2], [14, 4], [9, 2, 2, 2, 2, 2], [4, 2, 2, 5]];

  function labelOf(bench, i) {
    const flow = bench.report.summary.flows.find((known) => known.id === bench.report.flows[i].id);
    return bench.report.summary.flows.length > 1 ? `${flow.law} #${flow.id}` : flow.law;
  }

  function chartsOf(bench) {
    const { report, setting } = bench;
    const { summary } = report;
    const colorOf = (law) => laws.find((known) => known.name === law.replace(/^udt\//, "").split(":")[0])?.color ?? null;
    const series = (values, scale) => report.flows.map((flow, i) => ({
      label: labelOf(bench, i),
      color: colorOf(summary.flows.find((known) => known.id === flow.id).law),
      dash: DASHES[i % DASHES.length],
      y: (values(flow) ?? []).map((y) => (y === null ? null : y * scale)),
    }));
    const link = summary.links[0];
    const first = summary.flows[0];
    const charts = [];
    const simple = summary.links.length === 2 && first;
    const bdp = simple ? link.rate_bps * first.rtt_s / 8 / first.wire_bytes : 0;
    const top = Math.max(...report.flows.flatMap((flow) => flow.cwnd_seg.filter((y) => y !== null)), 1);
    // Of one flow also what is on the way, which a limit may keep below the window.
    const way = report.flows.length === 1 ? [{ label: "on the way", color: null, dash: [2, 2], y: report.flows[0].inflight_seg }] : [];
    charts.push({ id: "cwnd", title: "Window (segments)", t: report.t, series: [...series((f) => f.cwnd_seg, 1), ...way],
      lines: simple && bdp < 2 * top ? [{ y: bdp, label: summary.flows.length > 1 ? `BDP of ${labelOf(bench, 0)}` : "BDP" }] : [] });
    charts.push({ id: "goodput", title: `Goodput in bins of ${report.goodput_bin_s} s (Mbit/s)`, t: report.goodput_t,
      series: series((f) => f.goodput_bps, 1e-6), lines: simple ? [{ y: link.rate_bps / 1e6, label: "rate of the link" }] : [] });
    const queues = summary.links.length === 2 ? report.queues.slice(0, 1) : report.queues.slice(0, 8);
    charts.push({ id: "queue", title: "Queue (packets)", t: report.t, series: queues.map((y, i) => ({
      label: summary.links[i].id, color: null, dash: DASHES[i % DASHES.length], y })) });
    const probe = probeOf(bench);
    if (probe >= 0) {
      // Another law has another variable in this place.
      const own = new Set(summary.flows.filter((known) => known.law === first.law).map((known) => known.id));
      charts.push({ id: "probe", title: `Variable ${setting.probe} of ${first.law}`, t: report.t,
        series: series((f) => (own.has(f.id) ? f.probes[probe] : []), 1).filter((s) => s.y.length) });
    }
    for (const chart of charts) {
      chart.changes = summary.changes_s;
      span(chart, summary.sim_s);
    }
    return charts;
  }

  // Every chart has the whole time of the run, so that a time is at one place in all: bins begin later.
  function span(chart, end) {
    const before = chart.t[0] > 0 ? [0] : [];
    const after = chart.t[chart.t.length - 1] < end ? [end] : [];
    chart.t = [...before, ...chart.t, ...after];
    for (const one of chart.series) one.y = [...before.map(() => null), ...one.y, ...after.map(() => null)];
  }

  function probeOf(bench) {
    const law = bench.report.summary.flows[0]?.law.split(":")[0];
    return (laws.find((known) => known.name === law)?.probes ?? []).indexOf(bench.setting.probe);
  }

  // Curves of one kind have one scale in both settings, so that heights compare.
  function drawAll() {
    const every = benches.map((bench) => (bench.report ? chartsOf(bench) : []));
    const tops = {};
    for (const chart of every.flat()) {
      const values = chart.series.flatMap((s) => s.y.filter((y) => y !== null).map((y) => y * 1.05));
      const most = Math.max(0, ...values, ...(chart.lines ?? []).map((line) => line.y * 1.15));
      if (chart.id !== "probe") tops[chart.id] = Math.max(tops[chart.id] ?? 0, most);
    }
    benches.forEach((bench, i) => {
      for (const plot of bench.plots) plot.destroy();
      const place = bench.find(".charts");
      place.replaceChildren();
      bench.plots = every[i].map((chart) => {
        chart.top = tops[chart.id];
        chart.marks = marksOf(i, chart.id);
        const canvas = make("div", { id: `${bench.place}-${chart.id}` });
        canvas.setAttribute("role", "img");
        canvas.setAttribute("aria-label", `${chart.title} over time: ${chart.series.map((s) => s.label).join("; ")}`);
        place.append(make("div", { className: "chart" }, make("h3", { textContent: chart.title }), canvas, make("ul", { className: "legend" })));
        return drawChart(chart, canvas, canvas.clientWidth, heightOf());
      });
    });
    showBadges();
  }

  const heightOf = () => (isPicture() ? 170 : innerWidth < 600 ? 210 : 240);

  // Uncovers the curves from the left to the right.
  function play() {
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    for (const plot of root.querySelectorAll(".u-over")) {
      if (!plot.offsetParent) continue;
      const cover = make("div", { className: "cover" });
      cover.addEventListener("animationend", () => cover.remove());
      plot.append(cover);
    }
  }

  // ---- lessons

  function pointsOf(i) {
    const bench = benches[i];
    if (lesson < 0 || !bench?.report) return [];
    return LESSONS[lesson].points.map((point, n) => {
      if (point.bench !== i) return null;
      const found = point.at(bench.report, probeOf(bench));
      return found && Number.isFinite(found.y) ? { ...found, label: String(n + 1), strong: strong === n } : null;
    }).filter(Boolean);
  }

  const marksOf = (i, chart) => pointsOf(i).filter((point) => point.chart === chart);

  function showLessons() {
    byId("lessons").replaceChildren(...LESSONS.map(({ title }, n) => {
      const button = make("button", { type: "button", textContent: `${n + 1}. ${title}` });
      button.addEventListener("click", () => (lesson === n ? leave() : begin(n)));
      return button;
    }));
  }

  function showLesson() {
    [...byId("lessons").children].forEach((button, n) => {
      if (n === lesson) button.setAttribute("aria-current", "true");
      else button.removeAttribute("aria-current");
    });
    const place = byId("lesson");
    place.hidden = lesson < 0;
    if (lesson < 0) return place.replaceChildren();
    const { title, intro, points } = LESSONS[lesson];
    const list = make("ol", {}, ...points.map(({ text: said, bench }, n) => {
      const badge = make("button", { type: "button", className: "badge", textContent: n + 1 });
      badge.setAttribute("aria-label", `Show point ${n + 1} in setting ${"AB"[bench]}`);
      badge.addEventListener("click", () => point(n));
      return make("li", {}, badge, make("span", { textContent: said }));
    }));
    place.replaceChildren(make("h2", { textContent: title }), make("p", { textContent: intro }), list);
    return showBadges();
  }

  // A number that no curve has now, as after a change of the setting, is grey.
  function showBadges() {
    const shown = [0, 1].flatMap((i) => pointsOf(i).map((found) => found.label));
    for (const badge of byId("lesson").querySelectorAll(".badge")) badge.disabled = !shown.includes(badge.textContent);
  }

  function point(n) {
    strong = n;
    const { bench } = LESSONS[lesson].points[n];
    const found = pointsOf(bench).find((known) => known.label === String(n + 1));
    drawAll();
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (found) byId(`${benches[bench].place}-${found.chart}`).scrollIntoView({ block: "center", behavior: calm ? "auto" : "smooth" });
  }

  function begin(n) {
    lesson = n;
    strong = null;
    set([LESSONS[n].a, LESSONS[n].b].map((own) => ({ ...DEFAULTS, ...own })));
    showLesson();
    remember();
  }

  function leave() {
    lesson = -1;
    strong = null;
    showLesson();
    drawAll();
    remember();
  }

  // ---- the page

  function set(settings) {
    for (const bench of benches.splice(0)) bench.close();
    settings.forEach((setting, i) => benches.push(new Bench("AB"[i], setting)));
    arrange();
  }

  function arrange() {
    const two = benches.length > 1;
    byId("benches").classList.toggle("two", two);
    byId("beside").setAttribute("aria-pressed", two);
    for (const bench of benches) bench.show("toml");
  }

  function recall() {
    root.classList.toggle("picture", new URLSearchParams(location.hash.slice(1)).has("picture"));
    const found = remembered();
    lesson = found.lesson;
    strong = null;
    set(found.settings);
    showLesson();
  }

  async function bytes() {
    const packed = Uint8Array.from(atob(byId("wasm").textContent.trim()), (c) => c.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).arrayBuffer();
  }

  async function start() {
    const missing = ["DecompressionStream", "WebAssembly", "Worker"].filter((name) => !(name in window));
    if (missing.length) throw new Error(`this browser has no ${missing.join(", ")}; one of 2023 or newer has`);
    data.worker = URL.createObjectURL(new Blob([byId("worker").textContent], { type: "text/javascript" }));
    module = await WebAssembly.compile(await bytes());
    laws = await new Promise((done, failed) => {
      const worker = new Worker(data.worker);
      worker.onmessage = (event) => { worker.terminate(); done(event.data.laws); };
      worker.onerror = (event) => failed(new Error(event.message));
      worker.postMessage({ module });
    });
    showLessons();
    recall();
    byId("version").textContent = `lfnlab ${data.version}.`;
    byId("beside").addEventListener("click", () => {
      if (benches.length > 1) benches.pop().close();
      else benches.push(new Bench("B", { ...benches[0].setting }));
      if (benches.length === 1 && lesson >= 0) leave();
      arrange();
      drawAll();
      remember();
    });
    byId("share").addEventListener("click", () => copy(location.href.split("#")[0] + address(), "Link copied."));
    byId("again").addEventListener("click", () => { drawAll(); play(); });
    addEventListener("hashchange", recall);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
    let width = root.clientWidth;
    new ResizeObserver(() => {
      if (root.clientWidth === width) return;
      width = root.clientWidth;
      requestAnimationFrame(drawAll);
      fitTables();
    }).observe(document.body);
  }

  const ready = start().catch((error) => {
    byId("fault").textContent = `The laboratory cannot start: ${error.message}.`;
    byId("fault").hidden = false;
  });

  // One run without the page, for a console and for tests.
  async function simulate(toml) {
    await ready;
    return new Promise((done) => {
      const worker = new Worker(data.worker);
      worker.onmessage = ({ data: said }) => {
        if (said.laws) worker.postMessage({ id: 1, text: toml });
        else if (said.progress === undefined) { worker.terminate(); done(said); }
      };
      worker.postMessage({ module });
    });
  }

  // When all runs of the page have ended.
  async function settled() {
    await ready;
    await Promise.all(benches.map((bench) => new Promise((done) => {
      if (bench.find(".results").classList.contains("old") && !bench.error) bench.waiting.push(done);
      else done();
    })));
  }

  return { ready, simulate, settled, benches, tomlOf: (setting) => tomlOf({ ...DEFAULTS, ...setting }), COPIES };
})();
