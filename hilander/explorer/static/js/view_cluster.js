// One cluster: its parts, its members by density, the nearest other clusters.

import { act } from "./actions.js";
import { get } from "./api.js";
import { newestOnly } from "./busy.js";
import { count, h, plural, replace, share } from "./dom.js";
import { clusterLink, clusterName, empty, pager, showDialog, thumb, thumbs } from "./parts.js";
import { pickCluster } from "./picker.js";
import { arrowKeys } from "./grid_keys.js";
import { makeSelection } from "./selection.js";
import { choice } from "./view_clusters.js";

const LIMIT = 60;

export async function showCluster(root, [level, number], page) {
  const cluster = Number(number);
  const path = `clusters/${level}/${cluster}`;
  const [detail, parts, nearest] = await Promise.all([get(path), get(`${path}/parts`, { limit: 60, at: page.values.get("at") }), get(`${path}/nearest`)]);
  const editable = level === "reviewed";
  const context = { cluster, level, path, detail, editable, page, root };
  root.append(head(context), h("div", { class: "stack" }, partsPanel(context, parts), await membersPanel(context), nearestPanel(context, nearest)));
}

function head({ cluster, level, detail, editable, page }) {
  const name = h("input", { class: "name-input", type: "text", value: detail.name ?? "", placeholder: `Cluster ${cluster}`, maxLength: 200, "aria-label": "Name of the cluster", disabled: !editable });
  name.addEventListener("change", () => act("name", { group: cluster, name: name.value }));
  name.addEventListener("keydown", (event) => event.key === "Enter" && name.blur());
  const junk = async () => (await act("junk", { group: cluster, junk: !detail.junk })) && page.redraw();
  if (editable) {
    page.keys.set("n", () => name.focus());
    page.keys.set("b", junk);
  }
  const identities = detail.identities && h("span", {}, detail.identities.total === 1 ? "one identity: " : `${plural(detail.identities.total, "identity", "identities")}: `,
    detail.identities.commonest.slice(0, 4).map((one) => [h("span", { class: "chip" }, `${one.label} × ${one.count}`), " "]));
  return h("div", { class: "page-head" },
    h("div", {},
      h("div", { class: "crumbs" }, h("a", { href: `#/clusters?level=${level}` }, editable ? "Clusters" : `Level ${level}`), h("span", {}, "›"), h("span", {}, `#${cluster}`),
        detail.above !== null && [h("span", {}, "· merged into"), h("a", { href: clusterLink(detail.level + 1, detail.above) }, `#${detail.above} of level ${detail.level + 1}`)]),
      editable ? name : h("h1", {}, `Cluster ${cluster}`),
      h("p", { class: "sub row" }, plural(detail.size, "item"), ` · ${editable ? `doubt ${share(detail.doubt)}` : `weakest merge ${share(1 - detail.doubt)}`} · quality ${share(detail.quality)}`,
        detail.purity !== null && ` · purity ${share(detail.purity)}`, detail.junk && h("span", { class: "chip bad" }, "junk"), detail.edited && h("span", { class: "chip accent" }, "edited")),
      identities && h("p", { class: "muted" }, identities)),
    editable
      ? h("div", { class: "row" }, h("button", { class: "button", onclick: () => mergeWith(cluster, page), data: { action: "merge-with" } }, "Merge with…"), h("button", { class: "button danger", onclick: junk, data: { action: "junk" } }, detail.junk ? "Not junk" : "Mark as junk", " ", h("kbd", {}, "b")))
      : h("span", { class: "chip warn" }, "read only: edits are made on the last level"));
}

async function mergeWith(cluster, page) {
  const chosen = await pickCluster("Merge with another cluster", { group: cluster }, { ok: "Merge with" });
  if (!chosen) return;
  const result = await act("merge", { groups: [cluster, chosen.cluster] });
  if (result) stay(cluster, page);
}

// After a merge the cluster may have another number.
async function stay(cluster, page) {
  const still = await get(`clusters/reviewed/${cluster}`).catch(() => null);
  if (still || !page.isHere()) page.redraw();
  else location.hash = "#/clusters?state=edited";
}

function partsPanel(context, parts) {
  const { editable, page, root, detail } = context;
  const chosen = page.keep(`parts of level ${parts.level}`, () => new Set());
  const buttons = h("div", { class: "row" });
  const rows = parts.items.map((one) => partRow(one, context, chosen, draw));
  function draw() {
    const all = () => {
      rows.slice(1).forEach((row) => row.querySelector("input").checked || row.querySelector("input").click());
    };
    replace(buttons,
      h("button", { class: "button", onclick: all, disabled: chosen.size >= rows.length - 1, data: { action: "select-parts" } }, "Select all but the largest"),
      h("button", { class: "button", disabled: !chosen.size, onclick: () => split(context, parts, [[...chosen]]), data: { action: "split-one" } }, chosen.size > 1 ? `Split ${chosen.size} off as one` : "Split off"),
      chosen.size > 1 && h("button", { class: "button", onclick: () => split(context, parts, [...chosen].map((n) => [n])), data: { action: "split-each" } }, "Split each off"));
  }
  function show() {
    const there = new Set(parts.items.map((one) => one.part));
    for (const part of chosen) there.has(part) || chosen.delete(part);
    rows.forEach((row, i) => markPart(row, chosen.has(parts.items[i].part)));
    draw();
  }
  draw();
  if (editable) root.addEventListener("shown", show);
  const below = parts.level >= 0 ? `clusters of level ${parts.level}` : "groups of items around its most typical item";
  const finer = Array.from({ length: detail.level + 1 }, (_, i) => [String(detail.level - 1 - i), detail.level - 1 - i >= 0 ? `level ${detail.level - 1 - i}` : "single links"]);
  const into = detail.size > 1 && choice("Split into", finer, String(parts.level), (event) => { page.remember({ at: event.target.value }); page.redraw(); });
  return h("section", { class: "panel" },
    h("div", { class: "spread" }, h("div", {}, h("h2", {}, "Why it merged"), h("p", { class: "muted" }, `${plural(parts.total, "part")}: the ${below} that form it, and how likely it is that each was joined rightly.`)), h("div", { class: "toolbar", style: { margin: 0 } }, into, editable && parts.total > 1 && buttons)),
    parts.total > 1 ? rows : h("p", { class: "muted" }, "It is one part at this level. Choose a finer level."),
    parts.total > parts.items.length && h("p", { class: "muted" }, `The ${parts.items.length} largest of ${count(parts.total)} are shown.`));
}

function partRow(one, { editable }, chosen, changed) {
  const box = editable && h("input", { type: "checkbox", "aria-label": `Select part ${one.part}`, data: { part: one.part } });
  const doubtful = one.linkage !== null && one.linkage < 0.9;
  const row = h("div", { class: "part" }, box || h("span"),
    h("div", { class: "part-facts" }, h("strong", {}, plural(one.size, "item")), h("br"),
      one.linkage === null ? "holds the most typical item" : h("span", { class: doubtful ? "chip warn" : "chip", title: "Estimated probability that it was joined rightly" }, `${share(one.linkage)} likely`), h("br"),
      one.level >= 0 && h("a", { href: clusterLink(one.level, one.part) }, `Cluster ${one.part} of level ${one.level}`)),
    thumbs(one.exemplars, { strip: true }));
  if (box) {
    box.addEventListener("change", () => {
      if (box.checked) chosen.add(one.part);
      else chosen.delete(one.part);
      markPart(row, box.checked);
      changed();
    });
  }
  return row;
}

function markPart(row, on) {
  row.querySelector("input").checked = on;
  row.classList.toggle("selected", on);
}

async function split({ cluster, page }, parts, groups) {
  const result = await act("split", { group: cluster, parts: groups, level: parts.level });
  if (!result) return;
  const chosen = page.keep(`parts of level ${parts.level}`, () => new Set());
  groups.flat().forEach((part) => chosen.delete(part));
  await nameParts([cluster, ...result.new_clusters]);
  page.redraw();
}

// Ask for names directly after a split, while the parts are visible.
async function nameParts(clusters) {
  const opened = await Promise.all(clusters.map((one) => get(`clusters/reviewed/${one}`)));
  const inputs = opened.map((one) => h("input", { type: "text", value: one.name ?? "", placeholder: clusterName({ cluster: one.cluster }), maxLength: 200, "aria-label": `Name of cluster ${one.cluster}` }));
  await new Promise((resolve) => {
    const save = async (event) => {
      event.preventDefault();
      for (const [i, one] of opened.entries()) {
        if (inputs[i].value.trim() !== (one.name ?? "")) await act("name", { group: one.cluster, name: inputs[i].value }, { quiet: true });
      }
      resolve();
      dialog.close();
    };
    const dialog = showDialog(
      h("form", { class: "stack", onsubmit: save }, h("h2", {}, "Name the parts"),
        opened.map((one, i) => h("div", { class: "stack", style: { gap: "6px" } }, h("div", { class: "spread" }, inputs[i], h("a", { href: clusterLink("reviewed", one.cluster), class: "muted" }, `#${one.cluster}, ${plural(one.size, "item")}`)), thumbs(one.exemplars.slice(0, 8), { strip: true }))),
        h("div", { class: "row end" }, h("button", { class: "button", type: "button", onclick: () => dialog.close() }, "Leave unnamed"), h("button", { class: "button primary", type: "submit" }, "Save names"))));
    dialog.addEventListener("close", resolve);
    inputs[0].focus();
  });
}

async function membersPanel({ cluster, path, editable, page, root }) {
  const grid = h("div", { class: "grid" });
  const foot = h("div");
  const { ticked, tick, drop, clear, show, dropLost } = makeSelection(page, grid, { key: "row", label: "Selected items", buttons });
  const place = page.keep("members", () => ({ offset: 0, sort: "" }));
  const rove = arrowKeys(grid, "a.thumb");
  const sort = choice("Sort", [["", "most typical first"], ["confidence", "least certain first"]], place.sort, (event) => { place.sort = event.target.value; load(0); });
  const newest = newestOnly();
  let drawn = 0;

  async function load(offset) {
    place.offset = offset;
    const found = await newest(get(`${path}/members`, { offset, limit: LIMIT, sort: place.sort }));
    if (!found) return;
    // After a move this page of the list may no longer exist.
    if (offset && !found.items.length) return load(0);
    drawn = offset;
    replace(grid, found.items.map((one, i) => memberItem(one, !place.sort && offset + i === 0)));
    rove();
    replace(foot, found.total > LIMIT ? pager(found, LIMIT, load) : "");
  }

  function memberItem(one, peak) {
    const box = editable && h("input", { class: "pick", type: "checkbox", tabIndex: -1, checked: ticked.has(one.row), "aria-label": `Select ${one.id}` });
    const node = h("div", { class: "item" + (ticked.has(one.row) ? " selected" : ""), data: { row: one.row } }, thumb(one, { peak }), h("span", { class: "id", title: one.id }, one.label ?? one.id), box);
    box?.addEventListener?.("change", () => tick(one.row, one, box.checked));
    return node;
  }

  async function move() {
    const rows = [...ticked.keys()];
    const chosen = await pickCluster(`Move ${plural(rows.length, "item")}`, { rows }, { ok: "Move to", canBeNew: true });
    if (chosen) await send(chosen.isNew ? { rows } : { rows, to: chosen.cluster });
  }

  async function send(body) {
    if (await act("move", body)) {
      drop(body.rows);
      stay(cluster, page);
    }
  }

  function buttons() {
    return [
      h("button", { class: "button primary", onclick: move, data: { action: "move" } }, "Move to…"),
      h("button", { class: "button", onclick: () => send({ rows: [...ticked.keys()] }), data: { action: "move-new" } }, "New cluster")];
  }

  page.keys.set("Escape", clear);
  page.keys.set("x", () => document.activeElement?.closest?.(".item")?.querySelector(".pick")?.click());
  page.keys.set("]", () => foot.querySelector('[data-page="next"]')?.click());
  page.keys.set("[", () => foot.querySelector('[data-page="back"]')?.click());
  root.addEventListener("shown", () => {
    if (drawn !== place.offset) load(place.offset);
    show();
    dropLost((row) => get(`points/${row}`).then((point) => point.cluster === cluster, () => true));
  });
  await load(place.offset);
  return h("section", { class: "panel" }, h("div", { class: "spread" }, h("div", {}, h("h2", {}, "Members"), h("p", { class: "muted" }, "The most typical item first.", editable && " Tick items to move them; x ticks the focused one, Shift a range.")), h("div", { class: "toolbar", style: { margin: 0 } }, sort)), grid, foot);
}

const closeness = (one) => `${plural(one.n_edges, "link")} lead there, mean cosine similarity ${share(one.affinity)}. Closeness is their part of all links of the cluster, each counted by how likely it joins two items of one identity.`;

function nearestPanel({ cluster, level, editable, page }, nearest) {
  const rows = nearest.items.map((one) =>
    h("div", { class: "near" },
      h("div", {}, h("a", { href: clusterLink(level, one.cluster) }, clusterName(one)), h("div", { class: "muted" }, plural(one.size, "item")), h("span", { class: "chip", title: closeness(one) }, `closeness ${share(one.linkage)}`)),
      thumbs(one.exemplars, { strip: true }),
      editable && h("button", { class: "button small", onclick: async () => (await act("merge", { groups: [cluster, one.cluster] })) && stay(cluster, page), data: { merge: one.cluster } }, "Merge")));
  return h("section", { class: "panel" }, h("h2", {}, "Nearest other clusters"), rows.length ? rows : empty(nearest.reason ?? "No other cluster is near."));
}
