// The queue of the review: one question at a time, answered with one key.

import { act, undo } from "./actions.js";
import { get } from "./api.js";
import { newestOnly } from "./busy.js";
import { count, h, plural, replace, share } from "./dom.js";
import { clusterLink, clusterName, empty, thumbs } from "./parts.js";

const AHEAD = 6;
const ASKS = {
  part: "Does this part belong to the cluster?", odd: "Does this item belong to the cluster?", pair: "Is this cluster the same?",
  lonely: "Does this single item belong to the cluster?", link: "Was this part merged rightly?",
};
const ASKS_MANY = {
  part: "Do these parts belong to the cluster?", odd: "Do these items belong to the cluster?", pair: "Are these clusters the same?",
  lonely: "Do these single items belong to the cluster?", link: "Was this part merged rightly?",
};

export async function showQueue(body, page, kind, onCounts) {
  // A skipped question is only shown again if the skip is undone.
  let queue = await get("review/queue", { kind, limit: AHEAD });
  let busy = false;
  let exceptions = new Set();
  const newest = newestOnly();
  const current = () => queue.items[0];

  // The answers change the order of what follows; the question that is shown stays.
  async function refresh() {
    const fresh = await newest(get("review/queue", { kind, limit: AHEAD })).catch(() => null);
    if (!fresh || page.left.aborted) return;
    const shown = current();
    const isOpen = shown && fresh.items.some((one) => one.key === shown.key);
    queue = isOpen ? { ...fresh, items: [shown, ...fresh.items.filter((one) => one.key !== shown.key)] } : fresh;
    onCounts(queue.counts);
    if (!isOpen) draw();
    else head.replaceChildren(...heading().childNodes);
  }

  async function answer(verdict) {
    const question = current();
    if (!question || busy) return;
    busy = true;
    try {
      const done = await act("answer", { key: question.key, verdict, except: verdict === "skip" ? [] : [...exceptions] }, { quiet: true });
      if (!done) {
        queue = await get("review/queue", { kind, limit: AHEAD });
      } else {
        const touched = new Set([question.group.cluster, ...(question.leaving ? [] : question.pieces.map((one) => one.piece))]);
        const isTouched = (one) => touched.has(one.group.cluster) || (!one.leaving && one.pieces.some((piece) => touched.has(piece.piece)));
        queue.items = queue.items.slice(1).filter((one) => !isTouched(one));
        queue.total -= 1;
        queue.answered += 1;
        if (!queue.items.length) queue = await get("review/queue", { kind, limit: AHEAD });
        else refresh();
      }
      draw();
    } finally {
      busy = false;
    }
  }

  const head = h("div");
  const heading = () => h("div", {}, h("div", { class: "spread", style: { marginBottom: "12px" } },
    h("span", { class: "muted num" }, `${count(queue.total)} open · ${count(queue.answered)} answered`),
    h("span", { class: "muted", title: "Probability of a change times the items that it concerns" }, `worth about ${plural(Math.max(1, Math.round(current().gain)), "item")}`)));

  function draw() {
    exceptions = new Set();
    onCounts(queue.counts);
    const question = current();
    if (!question) {
      replace(body, empty(queue.reason ?? `No open questions worth asking. ${plural(queue.answered, "question")} answered.`));
      return;
    }
    head.replaceChildren(...heading().childNodes);
    const several = question.pieces.length > 1;
    const same = h("button", { class: "button primary", onclick: () => answer("same"), data: { verdict: "same" } });
    const different = h("button", { class: "button danger", onclick: () => answer("different"), data: { verdict: "different" } });
    const pieces = question.pieces.map((one, i) => pieceCard(one, i, several, question, (on) => { mark(one.piece, on); }));
    function mark(piece, on) {
      if (on) exceptions.add(piece);
      else exceptions.delete(piece);
      relabel();
    }
    function relabel() {
      const n = exceptions.size;
      const rest = question.pieces.length - n;
      replace(same, several ? (n ? `${rest} belong, ${n} not` : `All ${question.pieces.length} belong`) : "Same", h("kbd", {}, "s"));
      replace(different, several ? (n ? `Only ${n} ${n === 1 ? "belongs" : "belong"}` : "None belongs") : "Different", h("kbd", {}, "d"));
    }
    relabel();
    const held = body.contains(document.activeElement) ? document.activeElement.dataset.verdict : null;
    replace(body, head,
      h("h2", { class: "asks" }, (several ? ASKS_MANY : ASKS)[question.kind]),
      h("div", { class: "question", data: { key: question.key } },
        h("div", { class: "side" }, h("div", { class: "spread" }, h("strong", {}, h("a", { href: clusterLink("reviewed", question.group.cluster) }, clusterName(question.group))), h("span", { class: "muted" }, question.leaving ? `${plural(question.group.size, "other item")}` : plural(question.group.size, "item"))), thumbs(question.group.exemplars)),
        h("div", { class: several ? "pieces-asked several" : "pieces-asked" }, pieces)),
      several && h("p", { class: "muted center" }, "Mark the exceptions with a click or their number, then answer for the others."),
      h("div", { class: "answers", data: { start: "" } }, same, different,
        h("button", { class: "button", onclick: () => answer("skip"), data: { verdict: "skip" } }, "Skip", h("kbd", {}, "k")),
        h("button", { class: "button", onclick: () => undo(), data: { action: "undo" } }, "Undo", h("kbd", {}, "u"))));
    // Who answers by a button goes on with it.
    if (held) body.querySelector(`[data-verdict="${held}"]`)?.focus();
  }

  const flip = (i) => body.querySelectorAll(".piece-asked button[aria-pressed]")[i]?.click();
  const keys = { s: () => answer("same"), d: () => answer("different"), k: () => answer("skip"), o: () => { if (current()) location.hash = clusterLink("reviewed", current().group.cluster); } };
  for (let i = 0; i < 8; i++) keys[String(i + 1)] = () => flip(i);
  Object.entries(keys).forEach(([key, action]) => page.keys.set(key, action));
  draw();
}

function pieceCard(one, i, several, question, changed) {
  const title = question.leaving ? plural(one.size, "item") : clusterName({ name: one.name, cluster: one.piece });
  const node = h("div", { class: "piece-asked", data: { piece: one.piece } },
    h("div", { class: "spread" },
      h("span", { class: "row" }, several && h("kbd", {}, i + 1), question.leaving ? h("strong", {}, title) : h("a", { href: clusterLink("reviewed", one.piece) }, h("strong", {}, title))),
      h("span", { class: "muted" }, !question.leaving && `${plural(one.size, "item")} · `, h("span", { title: "Estimated probability that it belongs to the cluster" }, `${share(one.same)} likely`))),
    thumbs(one.exemplars, { strip: true }),
    several && h("button", { class: "button small", type: "button", "aria-pressed": "false", "aria-label": `Exception: ${title}`, onclick: (event) => toggle(event.currentTarget) }, "Exception"));
  function toggle(button) {
    const on = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(on));
    node.classList.toggle("exception", on);
    changed(on);
  }
  return node;
}
