// How explanations are shown: the panel of a token, and texts whose tokens open it.
//
// treecrf.renderPanel(element, token, sequence): fills the element with an explanation of a token.
//   token: the JSON of TokenExplanation.to_dict(); `rest`, if it is there, says how many
//   contributions were left out and what they add: {count, value}.
//   sequence: the JSON of SequenceExplanation.to_dict(), for alternatives; may be left out.
// treecrf.renderText(element, sequence, options): fills the element with a text.
//   options: {types: names of types in the order of their colours, choose(token or null, span or
//   null, button)}
// treecrf.workplace(element, {types, spans}): makes of the element a place for texts and a panel;
//   returns a function that shows a list of sequences there. spans: whether labels are of spans.
// treecrf.alternatives(sequence): elements that list the best labellings of a sequence.
// treecrf.spansOf(labels): [{start, end, label}] of BILUO, BIO and BIOES labels.
// Everything that comes from data becomes text, never markup.
"use strict";
var treecrf = (() => {
  const MOST_LABELS = 8;
  const MOST_FEATURES = 8; // for, and as many against
  const MOST_EFFECTS = 8;
  const MOST_ALTERNATIVES = 5;
  const UNSURE = 0.9;
  const COLOURS = 8;
  const KEPT_TOGETHER = 20; // letters of a token that stays on one line with the name of its entity

  const make = (name, attributes, ...children) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) {
      if (value !== null && value !== undefined && value !== false) {
        element.setAttribute(key, value === true ? "" : value);
      }
    }
    element.append(...children.filter((child) => child !== null && child !== undefined));
    return element;
  };

  const percent = (p) => {
    const digits = p > 0.9995 || p < 0.0005 ? 2 : 1;
    return `${(100 * p).toFixed(digits)} %`;
  };
  const signed = (value) => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(2)}`;

  // A bar from 0 to 1; or, where `both` is given, to either side of the middle.
  const bar = (value, both) => {
    const fill = make("span", { class: value < 0 ? "fill minus" : "fill" });
    const width = both ? (50 * Math.abs(value)) / both : 100 * value;
    fill.style.width = `${Math.min(100, Math.max(0.5, width))}%`;
    fill.style.left = both ? (value < 0 ? `${50 - width}%` : "50%") : "0";
    return make("span", { class: both ? "barbox both" : "barbox", "aria-hidden": "true" }, fill);
  };

  const kindOf = (cell) => {
    if (cell instanceof Element && cell.classList.contains("barbox")) return "bars";
    return typeof cell === "string" && /^[−+\d]/.test(cell) ? "number" : null;
  };

  const table = (caption, header, rows) => {
    const cells = (row) =>
      row.map((cell, i) =>
        i === 0 ? make("th", { scope: "row" }, cell) : make("td", { class: kindOf(cell) }, cell),
      );
    const title = (text, i) => make("th", { scope: "col", class: kindOf(rows[0][i]) }, text);
    const head = header ? make("thead", null, make("tr", null, ...header.map(title))) : null;
    const body = make("tbody", null, ...rows.map((row) => make("tr", null, ...cells(row))));
    return make("table", { "aria-label": caption }, head, body);
  };

  const section = (title, ...children) => [make("h3", null, title), ...children];

  const labelBars = (token) => {
    const shown = token.probabilities.slice(0, MOST_LABELS).filter((p, i) => i < 2 || p.probability >= 0.0005);
    const rows = shown.map((p) => [String(p.label), bar(p.probability), percent(p.probability)]);
    return section("Labels", table("probabilities of labels", null, rows));
  };

  const featureName = (one) =>
    make("span", null, one.feature, " ", make("span", { class: "source" }, one.source));

  const features = (token) => {
    const positive = token.contributions.filter((c) => c.value > 0).slice(0, MOST_FEATURES);
    const negative = token.contributions.filter((c) => c.value < 0).slice(0, MOST_FEATURES);
    const shown = new Set([...positive, ...negative]);
    const others = token.contributions.filter((c) => !shown.has(c));
    let count = others.length;
    let rest = others.reduce((sum, c) => sum + c.value, 0);
    if (token.rest) {
      count += token.rest.count;
      rest += token.rest.value;
    }
    const fixed = [["where trees begin", token.base]];
    for (const [side, transition] of [["label before: ", token.left], ["label after: ", token.right]]) {
      const note = transition.forbidden ? " (forbidden)" : "";
      fixed.push([side + transition.neighbour + note, transition.value]);
    }
    if (count) fixed.push([`${count} other features`, rest]);
    const values = [...shown].map((c) => c.value).concat(fixed.map((f) => f[1]));
    const most = Math.max(...values.map(Math.abs), 1e-9);
    const rows = (list) => list.map((c) => [featureName(c), bar(c.value, most), signed(c.value)]);
    const rather = token.against === null ? "" : ` rather than ${token.against}`;
    const parts = [];
    if (positive.length) parts.push(...section(`For ${token.label}${rather}`, table("features for the label", null, rows(positive))));
    if (negative.length) parts.push(...section("Against it", table("features against the label", null, rows(negative))));
    const sum = fixed.map(([name, value]) => [name, bar(value, most), signed(value)]);
    sum.push([make("strong", null, "score"), "", signed(token.score)]);
    parts.push(...section("And", table("the rest of the score", null, sum)));
    return parts;
  };

  const whatIf = (token) => {
    if (!token.effects.length) return [];
    const rows = token.effects.slice(0, MOST_EFFECTS).map((e) => {
      const change = e.replaced_by === null ? ["without ", e.feature] : [`${e.feature} → `, e.replaced_by];
      const best = e.best === token.label ? "" : ` ${e.best}`;
      return [make("span", null, ...change), percent(e.after), best];
    });
    const title = `What if: P(${token.label}), now ${percent(token.effects[0].before)}`;
    return section(title, table("what would change the probability", ["", "P", "best then"], rows));
  };

  const neighbours = (token) => {
    if (!token.context) return [];
    const names = { alone: "this token alone", left: "and what is before", right: "or what is after", both: "the whole sequence" };
    const rows = Object.entries(names).map(([key, name]) => {
      const view = token.context[key];
      const best = view.best === token.label ? "" : `best: ${view.best} ${percent(view.best_probability)}`;
      return [make("span", null, name, best ? make("span", { class: "source" }, ` ${best}`) : null), bar(view.probability), percent(view.probability)];
    });
    return section(`How much neighbours decide: P(${token.label})`, table("probability by context", null, rows));
  };

  const parse = (label) => {
    const match = /^([BILUES])(?:-(.*))?$/s.exec(String(label));
    return match ? [match[1].replace("L", "E").replace("U", "S"), match[2] || ""] : ["O", ""];
  };

  const spansOf = (labels) => {
    const spans = [];
    let start = 0;
    let before = ["O", ""];
    [...labels, "O"].forEach((label, i) => {
      const now = parse(label);
      const goesOn = "BI".includes(before[0]) && "IE".includes(now[0]) && now[1] === before[1];
      if (before[0] !== "O" && !goesOn) spans.push({ start, end: i, label: before[1] });
      if (now[0] !== "O" && !goesOn) start = i;
      before = now;
    });
    return spans;
  };

  const words = (sequence, start, end) => sequence.texts.slice(start, end).join(" ");

  // What another labelling says otherwise than the best one.
  const changes = (best, other, sequence) => {
    if (sequence.spans.length || spansOf(best).length || spansOf(other).length) {
      const key = (s) => `${s.start}:${s.end}:${s.label}`;
      const [a, b] = [spansOf(best), spansOf(other)];
      const [inA, inB] = [new Set(a.map(key)), new Set(b.map(key))];
      const gone = a.filter((s) => !inB.has(key(s))).map((s) => `no ${s.label} “${words(sequence, s.start, s.end)}”`);
      const come = b.filter((s) => !inA.has(key(s))).map((s) => `${s.label} “${words(sequence, s.start, s.end)}”`);
      return [...come, ...gone].join(", ");
    }
    return other
      .map((label, i) => (label === best[i] ? null : `“${words(sequence, i, i + 1)}” ${label}`))
      .filter((text) => text)
      .join(", ");
  };

  const alternatives = (sequence) => {
    if (!sequence || sequence.alternatives.length < 2) return [];
    const [best, ...others] = sequence.alternatives;
    const line = (alternative, text) =>
      make("li", null, make("strong", null, percent(alternative.probability)), " ", text);
    return section(
      "The best labellings of the whole",
      make(
        "ol",
        { class: "changes" },
        line(best, "as shown"),
        ...others.slice(0, MOST_ALTERNATIVES - 1).map((a) => line(a, changes(best.labels, a.labels, sequence))),
      ),
    );
  };

  const renderPanel = (element, token, sequence) => {
    const text = token.text === null ? `position ${token.position + 1}` : `“${token.text}”`;
    const own = token.probabilities.find((p) => p.label === token.label);
    const chance = own ? ` ${percent(own.probability)}` : "";
    element.replaceChildren(
      make("h2", null, `${text} ${token.label}${chance}`),
      ...token.missing.map((sentence) => make("p", { class: "soft" }, sentence)),
      ...labelBars(token),
      ...features(token),
      ...whatIf(token),
      ...neighbours(token),
      ...alternatives(sequence),
    );
  };

  const strength = (p) => `p${Math.round(10 * Math.min(1, Math.max(0, p)))}`;

  const renderText = (element, sequence, options) => {
    const explained = new Map(sequence.tokens.map((token) => [token.position, token]));
    const typed = (name) => `t${Math.max(0, options.types.indexOf(name)) % COLOURS}`;
    const startOf = new Map(sequence.spans.map((span) => [span.start, span]));
    const marksSpans = sequence.spans.length > 0 || options.spans;
    const token = (i) => {
      const own = explained.get(i);
      const unsure = sequence.probabilities[i] < UNSURE;
      const shown = make("span", { class: `token${own ? " explained" : ""}${unsure ? " unsure" : ""}` }, sequence.texts[i]);
      const name = `${sequence.texts[i]}: ${sequence.labels[i]}, ${percent(sequence.probabilities[i])}`;
      shown.title = name;
      if (own) {
        shown.setAttribute("role", "button");
        shown.setAttribute("tabindex", "-1");
        shown.setAttribute("aria-label", name);
        shown.addEventListener("click", () => options.choose(own, null, shown));
      }
      if (marksSpans) return shown;
      const label = String(sequence.labels[i]);
      return make("span", { class: `tagged ${typed(label)} ${strength(sequence.probabilities[i])}` }, shown, make("small", null, label));
    };
    const space = (i) => (sequence.whitespace.length ? sequence.whitespace[i] : " ");
    const parts = [];
    for (let i = 0; i < sequence.texts.length; ) {
      const span = startOf.get(i);
      if (!span) {
        parts.push(token(i), space(i));
        i += 1;
        continue;
      }
      const inside = [];
      for (; i < span.end - 1; i++) inside.push(token(i), space(i));
      const button = make("button", { class: "type", type: "button", tabindex: "-1" }, `${span.label} ${Math.round(100 * span.probability)}`);
      button.setAttribute("aria-label", `${words(sequence, span.start, span.end)}: ${span.label}, ${percent(span.probability)}`);
      button.addEventListener("click", () => options.choose(explained.get(span.start) || null, span, button));
      const short = String(sequence.texts[i]).length <= KEPT_TOGETHER;
      inside.push(make("span", { class: short ? "last" : null }, token(i), button));
      parts.push(make("mark", { class: `entity ${typed(span.label)} ${strength(span.probability)}` }, ...inside), space(i));
      i += 1;
    }
    element.replaceChildren(...parts);
    walk(element);
  };

  // One tab stop for a text; the arrows go from token to token, Home and End to the first and last.
  const walk = (element) => {
    const stops = [...element.querySelectorAll("[tabindex='-1']")];
    if (stops.length) stops[0].tabIndex = 0;
    element.onkeydown = (event) => {
      const at = stops.indexOf(event.target);
      if (at < 0) return;
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        event.target.click();
        return;
      }
      const to = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: stops.length - 1 }[event.key];
      if (to === undefined || to < 0 || to >= stops.length) return;
      event.preventDefault();
      stops[at].tabIndex = -1;
      stops[to].tabIndex = 0;
      stops[to].focus();
    };
  };

  // A place for texts with a panel beside or below them; returns a function that shows sequences.
  const workplace = (element, options) => {
    const texts = make("div", { class: "texts" });
    const panel = make("aside", { class: "panel", "aria-label": "Explanation", "aria-live": "polite", tabindex: "-1", hidden: true });
    element.classList.add("workplace");
    element.replaceChildren(texts, panel);
    let chosen = null;
    const close = () => {
      panel.hidden = true;
      element.classList.remove("open");
      if (chosen) chosen.classList.remove("chosen");
      if (chosen) chosen.focus({ preventScroll: true });
      chosen = null;
    };
    const open = (sequence, token, span, button) => {
      if (chosen) chosen.classList.remove("chosen");
      chosen = button;
      button.classList.add("chosen");
      fill(panel, sequence, token, span, close);
      panel.hidden = false;
      panel.scrollTop = 0;
      element.classList.add("open");
      button.scrollIntoView({ block: "nearest" });
    };
    element.onkeydown = (event) => {
      if (event.key === "Escape" && !panel.hidden) close();
    };
    return (sequences) => {
      close();
      texts.replaceChildren(
        ...sequences.map((sequence) => {
          const place = make("p", { class: "sequence" });
          const choose = (token, span, button) => open(sequence, token, span, button);
          renderText(place, sequence, { ...options, choose });
          return place;
        }),
      );
    };
  };

  // The panel of a token; of an entity, its probability and a choice among its tokens first.
  const fill = (panel, sequence, token, span, close) => {
    const button = make("button", { class: "close", type: "button" }, "Close");
    button.addEventListener("click", close);
    const body = make("div");
    if (token) renderPanel(body, token, sequence);
    else body.append(make("p", { class: "soft" }, "Its tokens are not explained on this page."));
    panel.replaceChildren(button);
    if (span && span.end - span.start > 1) {
      const title = `“${words(sequence, span.start, span.end)}” ${span.label} ${percent(span.probability)}`;
      const own = sequence.tokens.filter((t) => t.position >= span.start && t.position < span.end);
      const buttons = own.map((t) => {
        const one = make("button", { type: "button", "aria-pressed": String(t === token) }, `${t.text} ${t.label}`);
        one.addEventListener("click", () => {
          for (const other of buttons) other.setAttribute("aria-pressed", String(other === one));
          renderPanel(body, t, sequence);
        });
        return one;
      });
      panel.append(make("h2", null, title), make("div", { class: "tokens" }, ...buttons));
    }
    panel.append(body);
  };

  return { renderPanel, renderText, workplace, alternatives, spansOf, percent, make };
})();
