// The review: questions with one-key answers, the log, conflicts of an earlier review, and exports.

import { act, redo, undo } from "./actions.js";
import { get } from "./api.js";
import { newestOnly } from "./busy.js";
import { count, h, plural, replace, share } from "./dom.js";
import { clusterLink, clusterName, empty, pager, thumbs } from "./parts.js";

const TABS = [["merge", "Doubtful merges"], ["pair", "Merge candidates"], ["log", "Log"], ["conflicts", "Conflicts"], ["export", "Export"]];

export async function showReview(root, [tab = "merge"], page) {
  const body = h("div");
  root.append(
    h("div", { class: "page-head" }, h("div", {}, h("h1", {}, "Review"), h("p", { class: "sub" }, "Answer where the model is least certain. Every action can be undone."))),
    h("div", { class: "tabs", role: "tablist" }, TABS.map(([key, text]) => h("button", { role: "tab", "aria-selected": String(key === tab), onclick: () => { location.hash = `#/review/${key}`; }, data: { tab: key } }, text))),
    body);
  const shows = { merge: showQueue, pair: showQueue, log: showLog, conflicts: showConflicts, export: showExports };
  if (!shows[tab]) throw new Error("This part of the review does not exist.");
  await shows[tab](body, page, tab);
}

async function showQueue(body, page, kind) {
  // A skipped question is only shown again if the skip is undone.
  let queue = await get("review/queue", { kind, limit: 5 });
  let busy = false;

  async function answer(verdict) {
    const question = queue.items[0];
    if (!question || busy) return;
    busy = true;
    try {
      if (!(await act("answer", { key: question.key, verdict }, { quiet: true }))) return;
      queue.items.shift();
      queue.total -= 1;
      queue.answered += 1;
      if (queue.items.length < 2) queue = await get("review/queue", { kind, limit: 5 });
      draw();
    } finally {
      busy = false;
    }
  }

  function draw() {
    const question = queue.items[0];
    if (!question) {
      replace(body, empty(queue.reason ?? `No open questions. ${plural(queue.answered, "question")} answered.`));
      return;
    }
    const merge = kind === "merge";
    replace(body,
      h("div", { class: "spread", style: { marginBottom: "12px" } },
        h("span", { class: "muted num" }, `${count(queue.total)} open · ${count(queue.answered)} answered`),
        h("span", { class: "muted" }, merge ? `The right side was merged into the left at level ${question.level}. Is that right?` : "These are two clusters. Are they one identity?")),
      h("div", { class: "question", data: { key: question.key } }, side(question.sides[0], merge ? "A: rest of" : "A:"), versus(question, merge), side(question.sides[1], merge ? "B: part of" : "B:")),
      h("div", { class: "answers" },
        h("button", { class: "button primary", onclick: () => answer("same"), data: { verdict: "same" } }, merge ? "Same, keep" : "Same, merge", h("kbd", {}, "s")),
        h("button", { class: "button danger", onclick: () => answer("different"), data: { verdict: "different" } }, merge ? "Different, split" : "Different, keep", h("kbd", {}, "d")),
        h("button", { class: "button", onclick: () => answer("skip"), data: { verdict: "skip" } }, "Skip", h("kbd", {}, "k")),
        h("button", { class: "button", onclick: () => undo() }, "Undo", h("kbd", {}, "u"))));
  }

  Object.entries({ s: () => answer("same"), d: () => answer("different"), k: () => answer("skip"), o: () => { const one = queue.items[0]; if (one) location.hash = clusterLink("reviewed", one.sides[0].cluster); } }).forEach(([key, action]) => page.keys.set(key, action));
  draw();
}

function side(half, letter) {
  return h("div", { class: "side" }, h("div", { class: "spread" }, h("strong", {}, h("span", { class: "muted" }, letter, " "), h("a", { href: clusterLink("reviewed", half.cluster) }, clusterName(half))), h("span", { class: "muted" }, plural(half.size, "item"))), thumbs(half.exemplars, { peak: true }));
}

function versus(question, merge) {
  return h("div", { class: "versus" }, h("span", {}, merge ? "linkage" : "shared linkage"), h("span", { class: "big" }, share(question.linkage)), h("span", {}, merge ? "of the link" : "of all edges"));
}

async function showLog(body, page) {
  const list = h("div");
  const foot = h("div");
  const newest = newestOnly();
  async function load(offset) {
    const found = await newest(get("review/log", { offset, limit: 50 }));
    if (!found) return;
    replace(list, found.items.length ? found.items.map((one) =>
      h("div", { class: "log-line" + (one.holds || ["undo", "redo"].includes(one.kind) ? "" : " gone"), data: { seq: one.seq } }, h("span", { class: "muted num" }, one.seq),
        h("span", {}, one.text, one.carried && h("span", { class: "chip" }, "carried over"), " ", one.clusters.slice(0, 3).map((c) => [h("a", { href: clusterLink("reviewed", c) }, `#${c}`), " "])),
        h("div", { class: "row end" }, one.can_undo && h("button", { class: "button small", onclick: () => undo(one.seq), "aria-label": `Undo: ${one.text}`, data: { undo: one.seq } }, "Undo"), h("time", { class: "muted", dateTime: one.at }, new Date(one.at).toLocaleString())))) : empty("The log is empty."));
    replace(foot, found.total > 50 ? pager(found, 50, load) : "");
  }
  replace(body, h("div", { class: "row", style: { marginBottom: "12px" } }, h("button", { class: "button", onclick: () => undo(), data: { action: "undo" } }, "Undo the last ", h("kbd", {}, "u")), h("button", { class: "button", onclick: redo, data: { action: "redo" } }, "Redo ", h("kbd", {}, "U"))), h("div", { class: "panel" }, list, foot));
  await load(0);
}

async function showConflicts(body) {
  const found = await get("review/conflicts");
  const names = { same: "reviewed as the same", different: "reviewed as different", name: "two names", scattered: "scattered", junk: "junk", lost: "gone" };
  replace(body, found.items.length
    ? h("div", { class: "panel" }, h("p", { class: "muted" }, "The run was clustered again. These earlier decisions do not fit its clusters; all others were carried over."),
      found.items.map((one) => h("div", { class: "diff" }, h("div", { class: "row" }, h("span", { class: "chip warn" }, names[one.kind] ?? one.kind), h("span", {}, one.text)), h("div", { class: "row" }, one.clusters.map((c) => h("a", { class: "button small", href: clusterLink("reviewed", c) }, `Open #${c}`))))))
    : empty("No conflicts. After a run is clustered again, decisions that no longer fit are listed here."));
}

async function showExports(body) {
  const overview = await get("overview");
  const links = (what) => h("div", { class: "row" }, ["csv", "parquet", "json"].map((format) => h("a", { class: "button", href: `api/review/export/${what}?format=${format}`, download: `${what}.${format}`, data: { export: `${what}-${format}` } }, format.toUpperCase())));
  replace(body, h("div", { class: "two" },
    h("section", { class: "panel stack" }, h("h2", {}, "Corrected labels"), h("p", { class: "muted" }, `One row for each of ${plural(overview.n_points, "item")}: id, cluster, name. Junk has cluster -1.`), links("labels")),
    h("section", { class: "panel stack" }, h("h2", {}, "Must-link and cannot-link pairs"), h("p", { class: "muted" }, "Pairs of ids from every answer, merge, split and move that is still in force."), links("pairs"))));
}
