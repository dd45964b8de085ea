"use strict";
// The search of the site, over search-index.js: what a title says weighs more than what a heading says, and
// a heading more than a text. search() needs no page, so node can call it too.
const search = (() => {
  const MOST_WORDS = 12;
  const MOST_LETTERS = 300;
  const MOST_RESULTS = 30;
  const EXCERPT = 180; // letters
  const STOP = new Set(("a an and are as at be by can do does for from get has have how i in is it my of on or that the this to "
    + "use using was what when where which why will with you your").split(" "));
  // Words of users, and the words of these pages.
  const SAME = new Map(Object.entries({
    bandwidth: ["rate"], cite: ["citation", "bibtex"], citing: ["citation", "bibtex"], congestion: ["cwnd"], cwnd: ["window"],
    dataframe: ["frame"], definition: ["formula", "meaning"], excel: ["csv", "spreadsheet"], graph: ["plot", "figure"], jumbo: ["9000b"], latency: ["rtt", "delay"],
    mtu: ["packet"], ram: ["memory"], sigkill: ["kill"], throughput: ["goodput"], uninstall: ["install"],
  }));
  // How much a page counts that repeats, or lists, what another one explains.
  const LESS = [[/^CHANGELOG$/, 0.4], [/^docs\/reference\/python$/, 0.5], [/^docs\/reference\//, 0.75], [/^docs\/(dependencies|validation|agree)$/, 0.75],
    [/^(ARCHITECTURE|CONTRIBUTING)$/, 0.75], [/^papers\//, 0.75], [/^laws\//, 0.9], [/^docs\/index$/, 0.5]];
  const WEIGHT = { title: 10, heading: 6, text: 1 };

  const plain = (text) => text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();
  const wordsOf = (text) => plain(text).match(/[\p{L}\p{N}]+/gu) ?? [];
  const stem = (word) => {
    if (word.length < 4 || /\d/.test(word)) return word;
    const short = word.replace(/(ies)$/, "y").replace(/(?<=..[^s])(s)$/, "").replace(/(?<=...)(ing|ed|ation|e)$/, "");
    return short.length < 3 ? word : short;
  };

  // ---- the index, with its words counted once

  let counted = null;
  function prepare(index) {
    if (counted?.index === index) return counted;
    const countOf = (words) => {
      const counts = new Map();
      for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
      return counts;
    };
    const pages = index.pages.map(({ name, title, sections }) => {
      const last = name.split("/").pop();
      const own = last === "README" ? name.split("/").at(-2) : last;
      return {
        name,
        title,
        titleWords: countOf([...wordsOf(title), ...(own === "index" ? [] : wordsOf(own))]),
        less: LESS.find(([pattern]) => pattern.test(name))?.[1] ?? 1,
        sections: sections.map(([heading, anchor, text], i) => ({
          heading, anchor, text, isTop: i === 0, words: countOf(wordsOf(text)), headingWords: countOf(wordsOf(heading)),
        })),
      };
    });
    const vocabulary = new Map();
    for (const page of pages) {
      page.all = new Set(page.titleWords.keys());
      for (const { words, headingWords } of page.sections) for (const word of [...words.keys(), ...headingWords.keys()]) page.all.add(word);
      for (const word of page.all) if (!vocabulary.has(word)) vocabulary.set(word, stem(word));
    }
    counted = { index, pages, vocabulary };
    return counted;
  }

  // ---- how well a word of the query meets words

  // 1 for the word itself, less for another ending, a word of the same meaning, and its beginning.
  function meets(word, other, otherStem) {
    if (other === word.word) return 1;
    if (otherStem === word.stem) return 0.9;
    if (word.same.includes(other)) return 0.7;
    if (word.stem.length >= 3 && other.startsWith(word.stem) && other.length <= word.stem.length + 5) return 0.5;
    return 0;
  }

  function inWords(word, counts) {
    let best = 0;
    let count = 0;
    for (const other of word.others) {
      const times = counts.get(other[0]);
      if (!times) continue;
      best = Math.max(best, other[1]);
      count += times * other[1];
    }
    return { best, count };
  }

  // The words of a query, each with the words of the index that it meets and how rare it is.
  function parse(query, { pages, vocabulary }) {
    const all = [...new Set(wordsOf(query.slice(0, MOST_LETTERS)))];
    const telling = all.filter((word) => !STOP.has(word));
    return (telling.length ? telling : all).slice(0, MOST_WORDS).map((text) => {
      const word = { word: text, stem: stem(text), same: SAME.get(text) ?? [], others: new Map() };
      for (const [other, otherStem] of vocabulary) {
        const how = meets(word, other, otherStem);
        if (how) word.others.set(other, how);
      }
      const there = pages.filter((page) => [...word.others.keys()].some((other) => page.all.has(other))).length;
      return { ...word, rare: Math.log(1 + pages.length / (1 + there)) };
    });
  }

  // ---- ranking

  function scoreOf(section, page, words, query) {
    let score = 0;
    let found = 0;
    for (const word of words) {
      const title = inWords(word, page.titleWords).best;
      // A heading that repeats the title adds nothing; the page's beginning comes before its other sections.
      const heading = section.isTop ? 0.3 * title : inWords(word, section.headingWords).best * (1 - title);
      const { best, count } = inWords(word, section.words);
      const text = best * (1 + Math.log(1 + count) / 2);
      const sum = WEIGHT.title * title + WEIGHT.heading * heading + WEIGHT.text * text;
      if (sum) found += 1;
      score += word.rare * sum;
    }
    if (!found) return 0;
    const whole = plain(query).trim();
    if (words.length > 1 && plain(section.text).includes(whole)) score *= 1.3;
    // A short title that the query fills is meant.
    const ours = [...page.titleWords.keys()].filter((word) => !STOP.has(word));
    const filled = ours.filter((other) => words.some((word) => word.others.has(other))).length / Math.max(ours.length, 1);
    return score * (found / words.length) ** 2 * (1 + filled) * page.less;
  }

  function excerptOf(section, words) {
    const { text } = section;
    const spots = [];
    for (const found of text.matchAll(/[\p{L}\p{M}\p{N}]+/gu)) {
      const other = plain(found[0]);
      const i = words.findIndex((word) => word.others.has(other));
      if (i >= 0) spots.push({ at: found.index, end: found.index + found[0].length, i });
    }
    // The place from which most different words follow.
    let best = 0;
    let most = 0;
    for (const { at } of spots) {
      const near = new Set(spots.filter((other) => other.at >= at && other.end <= at + EXCERPT - 40).map((other) => other.i)).size;
      if (near > most) [best, most] = [at, near];
    }
    let from = Math.max(0, best - 40);
    if (from) from = text.indexOf(" ", from) + 1 || from;
    let to = Math.min(text.length, from + EXCERPT);
    if (to < text.length) to = Math.max(text.lastIndexOf(" ", to), from + EXCERPT / 2);
    const parts = [];
    let done = from;
    for (const { at, end } of spots) {
      if (at < from || end > to) continue;
      parts.push([text.slice(done, at), false], [text.slice(at, end), true]);
      done = end;
    }
    parts.push([text.slice(done, to), false]);
    if (from) parts.unshift(["… ", false]);
    if (to < text.length) parts.push([" …", false]);
    return parts.filter(([said]) => said);
  }

  // Pages by rank, each with its best section: { name, title, heading, anchor, excerpt: [[text, is a hit]] }.
  function search(query, index) {
    const known = prepare(index);
    const words = parse(query, known);
    const ranked = [];
    for (const page of words.length ? known.pages : []) {
      let best = null;
      for (const section of page.sections) {
        const score = scoreOf(section, page, words, query);
        if (score && (!best || score > best.score)) best = { score, section };
      }
      if (best) ranked.push({ page, ...best });
    }
    ranked.sort((one, other) => other.score - one.score || (one.page.name < other.page.name ? -1 : 1));
    return ranked.slice(0, MOST_RESULTS).map(({ page, section, score }) => ({
      name: page.name, title: page.title, heading: section.isTop ? "" : section.heading, anchor: section.isTop ? "" : section.anchor,
      excerpt: excerptOf(section, words), score,
    }));
  }

  // ---- the page

  const make = (tag, more, ...children) => {
    const element = Object.assign(document.createElement(tag), more);
    element.append(...children);
    return element;
  };

  function show(query) {
    const list = document.getElementById("search-results");
    const said = document.getElementById("search-said");
    const found = search(query, searchIndex);
    const asked = query.trim();
    if (!asked) said.textContent = "Write one or more words.";
    else if (!found.length) said.textContent = "No page has these words. Other words may help; the index of names and the list of tasks are below.";
    else said.textContent = found.length === 1 ? "1 page" : `${found.length === MOST_RESULTS ? "The first " : ""}${found.length} pages`;
    document.getElementById("search-none").hidden = !asked || found.length > 0;
    list.replaceChildren(...found.map(({ name, title, heading, anchor, excerpt }) => {
      const link = make("a", { href: `${name}.html${anchor ? `#${anchor}` : ""}` }, title, ...(heading ? [" › ", heading] : []));
      return make("li", {}, make("h2", {}, link), make("p", { className: "where", textContent: name }),
        make("p", {}, ...excerpt.map(([text, isHit]) => (isHit ? make("mark", { textContent: text }) : text))));
    }));
  }

  function start() {
    const input = document.getElementById("search-words");
    input.value = new URLSearchParams(location.search).get("q") ?? "";
    show(input.value);
    let later = 0;
    const remember = () => history.replaceState(null, "", input.value ? `?q=${encodeURIComponent(input.value)}` : "?");
    input.addEventListener("input", () => {
      clearTimeout(later);
      later = setTimeout(() => { show(input.value); if (input.value.length < 1000) remember(); }, 150);
    });
    input.form.addEventListener("submit", (event) => { event.preventDefault(); show(input.value); });
    if (!input.value) input.focus();
  }

  if (typeof document !== "undefined") addEventListener("DOMContentLoaded", start);
  return search;
})();
