// Shows findings, takes decisions by keyboard and mouse, and saves them as JSON lines.
// Everything that comes from data becomes text, never markup.
"use strict";
(() => {
  const COLOURS = 8;
  const AROUND = 25; // words shown on both sides of a finding
  const DECIDED = { a: "accept", r: "reject", u: null };
  const NAMES = { accept: "accepted", reject: "rejected" };
  const { entries, types, file } = treecrfData;

  const make = (name, attributes, ...children) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) element.setAttribute(key, value);
    element.append(...children);
    return element;
  };
  const percent = (p) => `${(100 * p).toFixed(p > 0.9995 || p < 0.0005 ? 2 : 1)} %`;

  // Decisions outlive a reload where the browser keeps them; the key tells apart pages that ask
  // anything else. It is hashed, as words may fill megabytes.
  const hashed = (text, seed) => {
    let hash = seed;
    for (let i = 0; i < text.length; i += 1) {
      hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
      hash ^= hash >>> 15;
    }
    return (hash >>> 0).toString(16);
  };
  const asked = JSON.stringify(
    entries.map((e) => [e.layer, e.unit, e.start, e.end, e.annotated, e.suggested, e.words]),
  );
  const hashes = [0x811c9dc5, 0x2545f491, 0x9e3779b9].map((seed) => hashed(asked, seed));
  const key = `treecrf ${document.title} ${hashes.join(" ")}`;
  const decisions = (() => {
    try {
      const kept = JSON.parse(localStorage.getItem(key));
      return Array.isArray(kept) && kept.length === entries.length ? kept : entries.map(() => null);
    } catch {
      return entries.map(() => null);
    }
  })();
  const keep = () => {
    try {
      localStorage.setItem(key, JSON.stringify(decisions));
    } catch {
      // without storage, decisions last as long as the page
    }
  };

  const line = (entry, spans, title, probability) => {
    const from = Math.max(0, entry.start - entry.first - AROUND);
    const to = Math.min(entry.words.length, entry.end - entry.first + AROUND);
    const parts = [from > 0 ? "… " : ""];
    for (let i = from; i < to; i += 1) {
      const at = entry.first + i;
      const span = spans.find((one) => one.start === at);
      if (span) {
        const words = entry.words.slice(i, span.end - entry.first).join(" ");
        const colour = types.indexOf(span.label) % COLOURS;
        const type = make("span", { class: "type" }, span.label);
        parts.push(make("mark", { class: `entity t${colour} p8` }, `${words} `, type), " ");
        i = span.end - entry.first - 1;
      } else {
        const inside = at >= entry.start && at < entry.end;
        parts.push(inside ? make("u", {}, entry.words[i]) : entry.words[i], " ");
      }
    }
    parts.push(to < entry.words.length ? "…" : "");
    const label = make("span", { class: "side" }, `${title}, ${percent(probability)}: `);
    return make("p", { class: "reviewed" }, label, ...parts);
  };

  const place = document.getElementById("findings");
  const cards = entries.map((entry, i) => {
    const facts = [`${entry.rank}. ${entry.kind}`, entry.place];
    const others = Object.entries(entry.elsewhere).map(([label, n]) => `${label} ${n}`);
    if (others.length) facts.push(`the same phrase elsewhere: ${others.join(", ")}`);
    const card = make(
      "article",
      { class: "finding", tabindex: "-1", "aria-label": `finding ${entry.rank}` },
      make("h2", {}, facts.join(" · ")),
      line(entry, entry.annotated, "annotated", entry.probability),
      line(entry, entry.suggested, "suggested", entry.suggested_probability),
    );
    const verdict = make("span", { class: "verdict" });
    const buttons = [["Accept (A)", "accept"], ["Reject (R)", "reject"], ["Undo (U)", null]].map(
      ([text, decision]) => {
        const button = make("button", { type: "button" }, text);
        button.addEventListener("click", () => decide(i, decision));
        return button;
      },
    );
    card.append(make("p", { class: "verdicts" }, ...buttons, verdict));
    card.addEventListener("focusin", () => { current = i; });
    return { card, verdict };
  });
  let current = 0;
  place.append(...cards.map((one) => one.card));

  const show = (i) => {
    const { card, verdict } = cards[i];
    verdict.textContent = NAMES[decisions[i]] || "";
    card.dataset.decision = decisions[i] || "";
  };
  const count = () => {
    const n = (what) => decisions.filter((one) => one === what).length;
    document.getElementById("progress").textContent =
      `${n("accept")} accepted, ${n("reject")} rejected, ${n(null)} to decide`;
  };
  const go = (i) => {
    if (!cards.length) return;
    current = Math.min(cards.length - 1, Math.max(0, i));
    cards[current].card.focus();
    cards[current].card.scrollIntoView({ block: "nearest" });
  };
  function decide(i, decision) {
    decisions[i] = decision;
    keep();
    show(i);
    count();
    go(decision === null ? i : i + 1);
  }

  const save = () => {
    const lines = entries
      .map((entry, i) => ({ ...entry, decision: decisions[i] }))
      .filter((entry) => entry.decision !== null)
      .map((entry) => `${JSON.stringify(entry)}\n`);
    const address = URL.createObjectURL(new Blob(lines, { type: "application/jsonl" }));
    const link = make("a", { href: address, download: file });
    link.click();
    setTimeout(() => URL.revokeObjectURL(address), 60000);
  };
  document.getElementById("save").addEventListener("click", save);

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const pressed = event.key.toLowerCase();
    if (pressed in DECIDED && cards.length) decide(current, DECIDED[pressed]);
    else if (pressed === "j" || event.key === "ArrowDown") go(current + 1);
    else if (pressed === "k" || event.key === "ArrowUp") go(current - 1);
    else if (pressed === "s") save();
    else return;
    event.preventDefault();
  });

  cards.forEach((_, i) => show(i));
  count();
  go(Math.max(0, decisions.indexOf(null)));
})();
