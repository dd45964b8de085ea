"use strict";
// Of every page: what scrolls says so, and the keyboard scrolls it too. Of the front page: the moving picture.

for (const place of document.querySelectorAll(".table-wrapper")) {
  const hint = Object.assign(document.createElement("p"), { className: "scrolls", textContent: "This table scrolls sideways →" });
  place.before(hint);
  const look = () => {
    const scrolls = place.scrollWidth > place.clientWidth + 1;
    hint.hidden = !scrolls;
    if (scrolls) {
      place.tabIndex = 0;
      place.setAttribute("role", "region");
      place.setAttribute("aria-label", "Table, scrolls sideways");
    } else {
      for (const name of ["tabindex", "role", "aria-label"]) place.removeAttribute(name);
    }
  };
  new ResizeObserver(look).observe(place);
  look();
}

// The still picture stays until the laboratory has drawn its curves. Without scripts, or in an old browser, it stays.
const still = document.querySelector('a[href="laboratory.html"] img');
if (still) {
  const setting = new URLSearchParams({ picture: 1, "a.law": "cubic", "a.second": "bbr", "a.buffer": "0.5bdp" });
  const frame = Object.assign(document.createElement("iframe"), {
    className: "laboratory", title: "Laboratory: windows and queue of two flows on one path", src: `../laboratory.html#${setting}`,
  });
  const place = Object.assign(document.createElement("div"), { className: "moving" });
  const link = still.closest("a");
  link.closest("p").replaceWith(place);
  place.append(link, frame);
  addEventListener("message", ({ source, data }) => {
    if (source === frame.contentWindow && data === "drawn") place.classList.add("drawn");
  });
}
