// The live page: labels, probabilities and reasons of what a person types, from the page's server.
"use strict";
(() => {
  const PAUSE = 150; // milliseconds after the last key
  const NBEST = 5;
  const EFFECTS = 8;
  const WIDE = matchMedia("(min-width: 900px)");

  const typed = document.getElementById("text");
  const status = document.getElementById("status");
  const place = document.getElementById("texts");
  const { types, spans } = JSON.parse(document.getElementById("treecrf-data").textContent);
  const { make } = treecrf;

  const shown = make("p", { class: "sequence", "aria-label": "the text with its labels" });
  const panel = make("aside", { class: "panel", "aria-label": "Explanation", "aria-live": "polite", tabindex: "-1", hidden: true });
  const others = make("div", { "aria-live": "polite" });
  place.classList.add("workplace");
  place.replaceChildren(make("div", { class: "texts" }, shown, others), panel);

  let asked = null; // the request for labels that is under way
  let explaining = null; // the one for an explanation
  let sequence = null;
  let annotated = ""; // the text that is shown, which may be behind the one that is typed
  let position = null; // of the token whose panel is open
  let closed = false; // by the person, who then opens it again

  const say = (text, wrong) => {
    status.textContent = text;
    status.classList.toggle("wrong", Boolean(wrong));
  };

  const ask = async (path, body, controller) => {
    const answer = await fetch(path, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
      signal: controller.signal,
    });
    const found = await answer.json();
    if (!answer.ok) throw new Error(found.error.reason);
    return found;
  };

  // Failures are told; requests that a later one has overtaken are not.
  const guarded = (work) => work.catch((error) => error.name === "AbortError" || say(error.message, true));

  // What is behind each token. Offsets count code points, of which strings hold some as two units.
  const gaps = (points, offsets) =>
    offsets.map(([, end], i) =>
      points.slice(end, i + 1 < offsets.length ? offsets[i + 1][0] : undefined).join(""));

  // An annotated text in the form that explanations have; its tokens are explained when chosen.
  const asSequence = (text) => ({
    texts: text.tokens,
    whitespace: gaps([...text.text], text.offsets),
    labels: text.labels.map((label) => (label === null ? "–" : label)),
    probabilities: text.probabilities || text.tokens.map(() => 1),
    spans: text.spans.map((span) => ({
      start: span.first_token,
      end: span.last_token + 1,
      label: span.label,
      probability: span.probability === null ? 1 : span.probability,
    })),
    alternatives: text.nbest,
    tokens: text.tokens.map((word, i) => ({ position: i, text: word })),
  });

  const close = () => {
    if (explaining) explaining.abort();
    panel.hidden = true;
    place.classList.remove("open");
    for (const chosen of shown.querySelectorAll(".chosen")) chosen.classList.remove("chosen");
    position = null;
  };

  const closeByHand = () => {
    const stop = shown.querySelector(".chosen");
    closed = true;
    close();
    if (stop) stop.focus({ preventScroll: true });
  };

  const buttonOf = (i) => shown.querySelectorAll(".token")[i];

  const explain = async (i, button) => {
    if (explaining) explaining.abort();
    explaining = new AbortController();
    for (const chosen of shown.querySelectorAll(".chosen")) chosen.classList.remove("chosen");
    button.classList.add("chosen");
    position = i;
    const found = await ask("explain", { text: annotated, positions: [i], nbest: 1, effects: EFFECTS }, explaining);
    const body = make("div");
    treecrf.renderPanel(body, found.tokens[0]);
    const end = make("button", { class: "close", type: "button" }, "Close");
    end.addEventListener("click", closeByHand);
    panel.replaceChildren(end, body);
    panel.hidden = false;
    place.classList.add("open");
  };

  const choose = (token, span, button) => {
    closed = false;
    guarded(explain(token.position, button));
  };

  // The token to explain without being asked: the one that was chosen, or the first of a span.
  const wanted = () => {
    if (position !== null && position < sequence.texts.length) return position;
    if (!WIDE.matches || closed || !sequence.texts.length) return null;
    return sequence.spans.length ? sequence.spans[0].start : 0;
  };

  const summary = (milliseconds) => {
    const n = sequence.texts.length;
    const found = spans ? `, ${sequence.spans.length} ${sequence.spans.length === 1 ? "span" : "spans"}` : "";
    return `${n} ${n === 1 ? "token" : "tokens"}${found}, ${milliseconds.toFixed(0)} ms`;
  };

  const annotate = async () => {
    if (asked) asked.abort();
    asked = new AbortController();
    const began = performance.now();
    const text = typed.value;
    const found = await ask("annotate", { text, nbest: NBEST }, asked);
    annotated = text;
    sequence = asSequence(found.docs[0]);
    treecrf.renderText(shown, sequence, { types, spans, choose });
    others.replaceChildren(...treecrf.alternatives(sequence));
    say(sequence.texts.length ? summary(performance.now() - began) : "");
    const next = wanted();
    if (next === null) close();
    else await explain(next, buttonOf(next));
  };

  let timer = null;
  typed.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => guarded(annotate()), PAUSE);
  });
  place.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !panel.hidden) closeByHand();
  });
  if (typed.value) guarded(annotate()); // what the browser kept when the page was loaded again
})();
