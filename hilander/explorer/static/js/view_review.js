// The review: the queue of questions, the log, conflicts with an earlier clustering, and exports.

import { act, redo, reviewEvents, undo } from "./actions.js";
import { get } from "./api.js";
import { newestOnly } from "./busy.js";
import { h, plural, replace } from "./dom.js";
import { clusterLink, empty, pager, thumbs } from "./parts.js";
import { showQueue } from "./review_queue.js";
import { tabList } from "./tabs.js";

const QUEUES = [["all", "Most worth it"], ["pair", "Clusters to merge"], ["part", "Parts to split"], ["lonely", "Single items"], ["odd", "Odd members"]];
const TABS = [...QUEUES, ["log", "Log"], ["conflicts", "Conflicts"], ["export", "Export"]];

export async function showReview(root, [tab = "all"], page) {
  const body = h("div", { role: "tabpanel", "aria-label": "Review" });
  const tabs = tabList("Parts of the review", TABS, tab, (key) => { location.hash = `#/review/${key}`; });
  root.append(
    h("div", { class: "page-head" }, h("div", {}, h("h1", {}, "Review"), h("p", { class: "sub" }, "The questions whose answers are expected to change the most come first. Every answer can be undone."))),
    tabs, body);
  if (!TABS.some(([key]) => key === tab) && tab !== "link") throw new Error("This part of the review does not exist.");
  const showCounts = (counts = {}) => {
    for (const [key, text] of QUEUES.slice(1)) tabs.querySelector(`[data-tab=${key}]`).textContent = counts[key] ? `${text} (${counts[key].toLocaleString("en-US")})` : text;
  };
  const shows = { log: showLog, conflicts: showConflicts, export: showExports };
  if (shows[tab]) await shows[tab](body, page);
  else await showQueue(body, page, tab, showCounts);
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

async function showConflicts(body, page) {
  const found = await get("review/conflicts");
  const names = { same: "reviewed as the same", different: "reviewed as different", name: "two names", scattered: "scattered", junk: "junk", lost: "gone" };
  // One click decides; the conflict is then gone from the list, and comes back with an undo.
  const solve = async (one, choice) => {
    if (await act("solve", { conflict: one.conflict, choice: choice.key })) reviewEvents.dispatchEvent(new Event("redraw"));
  };
  replace(body, found.items.length
    ? h("div", { class: "panel" }, h("p", { class: "muted" }, "The run was clustered again. These earlier decisions do not fit its clusters; all others were carried over. Choose what holds now."),
      found.items.map((one) => h("div", { class: "diff", data: { conflict: one.conflict } }, h("div", { class: "row" }, h("span", { class: "chip warn" }, names[one.kind] ?? one.kind), h("span", {}, one.text)),
        one.exemplars.length > 0 && h("div", { class: "pieces" }, one.exemplars.map((side) => h("div", { class: "piece" }, h("a", { href: clusterLink("reviewed", side.cluster) }, side.name ?? `Cluster ${side.cluster}`), thumbs(side.exemplars, { strip: true })))),
        h("div", { class: "row" }, one.choices.map((choice) => h("button", { class: "button small", onclick: () => solve(one, choice), data: { choice: choice.key } }, choice.text))))))
    : empty("No conflicts. After a run is clustered again, decisions that no longer fit are listed here."));
}

async function showExports(body) {
  const overview = await get("overview");
  const links = (what) => h("div", { class: "row" }, ["csv", "parquet", "json"].map((format) => h("a", { class: "button", href: `api/review/export/${what}?format=${format}`, download: `${what}.${format}`, data: { export: `${what}-${format}` } }, format.toUpperCase())));
  replace(body, h("div", { class: "two" },
    h("section", { class: "panel stack" }, h("h2", {}, "Corrected labels"), h("p", { class: "muted" }, `One row for each of ${plural(overview.n_points, "item")}: id, cluster, name. Junk has cluster -1.`), links("labels")),
    h("section", { class: "panel stack" }, h("h2", {}, "Must-link and cannot-link pairs"), h("p", { class: "muted" }, "Pairs of ids from every answer, merge, split and move that is still in force."), links("pairs"))));
}
