"use strict";
// Draws the charts of a diagnosis, on grounds in the colours of the causes.
(() => {
  const charts = JSON.parse(document.getElementById("diagnosed").textContent);
  const root = document.documentElement;
  const PAPER = 660; // CSS pixels: the text of a page of A4
  let drawn = [];

  function draw() {
    for (const plot of drawn) plot.destroy();
    const paper = root.classList.contains("paper");
    drawn = charts.map((chart) => {
      const place = document.getElementById(chart.id);
      return drawChart(chart, place, paper ? PAPER : place.clientWidth, paper ? 150 : 190);
    });
    fitTables();
  }

  draw();
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  new ResizeObserver(() => {
    if (root.classList.contains("paper")) return;
    for (const plot of drawn) plot.setSize({ width: plot.root.parentElement.clientWidth, height: 190 });
    fitTables();
  }).observe(document.body);
  window.addEventListener("beforeprint", () => { root.classList.add("paper"); draw(); });
  window.addEventListener("afterprint", () => { root.classList.remove("paper"); draw(); });
})();
