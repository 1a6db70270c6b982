// Clusters as cards: sort, search, filter, select and merge.

import { act } from "./actions.js";
import { get } from "./api.js";
import { newestOnly } from "./busy.js";
import { h, plural, replace } from "./dom.js";
import { ask, card, clusterName, empty, pager } from "./parts.js";
import { makeSelection } from "./selection.js";

const LIMIT = 24;
const SORTS = [["size", "largest"], ["doubt", "most doubtful"], ["quality", "best"], ["purity", "most mixed"], ["number", "number"]];
const STATES = [["all", "all"], ["named", "named"], ["unnamed", "not named"], ["junk", "junk"], ["edited", "edited"], ["mixed", "mixed"]];

export async function showClusters(root, _, page) {
  const overview = await get("overview");
  const values = page.values;
  const list = h("div", { class: "cards", data: { start: "" } });
  const { ticked, tick, drop, clear, show, dropLost } = makeSelection(page, list, { key: "cluster", label: "Selected clusters", buttons });
  const newest = newestOnly();
  const foot = h("div");
  const sub = h("p", { class: "sub" });
  const level = () => values.get("level") ?? "reviewed";
  let shown = [];
  let current = -1;

  async function load(offset = 0) {
    page.remember({ offset: offset || null });
    const asked = Object.fromEntries(["level", "sort", "reverse", "search", "min_size", "max_size", "state"].map((name) => [name, values.get(name)]));
    const found = await newest(get("clusters", { ...asked, offset, limit: LIMIT }));
    if (!found) return;
    shown = found.items;
    current = -1;
    sub.textContent = `${plural(found.total, "cluster")} ${level() === "reviewed" ? "as reviewed" : `of level ${level()}`}`;
    replace(list, shown.map((one) => card(one, level(), { pick: level() === "reviewed" ? pick : null, selected: ticked.has(one.cluster) })));
    replace(foot, found.total ? pager(found, LIMIT, (to) => { load(to); scrollTo(0, 0); }) : empty("No cluster matches. Change the filters."));
  }

  const pick = (one, on) => tick(one.cluster, one, on);

  // If the view was redrawn in the meantime, this list is no longer the visible one.
  const refresh = () => (page.left.aborted ? page.redraw() : load(Number(values.get("offset") ?? 0)));

  async function merge() {
    const groups = [...ticked.keys()];
    if (groups.length < 2) return;
    if (await act("merge", { groups })) {
      drop(groups);
      await refresh();
    }
  }

  async function junk() {
    const chosen = [...ticked.values()];
    for (const one of chosen) await act("junk", { group: one.cluster, junk: !one.junk }, { quiet: chosen.length > 1 });
    drop(chosen.map((one) => one.cluster));
    await refresh();
  }

  function buttons() {
    return [
      h("button", { class: "button primary", disabled: ticked.size < 2, onclick: merge, data: { action: "merge" } }, "Merge ", h("kbd", {}, "m")),
      h("button", { class: "button", onclick: junk, data: { action: "junk" } }, "Junk ", h("kbd", {}, "b"))];
  }

  function step(by) {
    const cards = [...list.children];
    if (!cards.length) return;
    current = Math.max(0, Math.min(cards.length - 1, current + by));
    cards.forEach((one, i) => one.classList.toggle("current", i === current));
    cards[current].focus({ preventScroll: true });
    cards[current].scrollIntoView({ block: "nearest" });
  }

  const columns = () => Math.max(1, getComputedStyle(list).gridTemplateColumns.split(" ").length);
  const focused = () => shown[[...list.children].indexOf(document.activeElement?.closest(".card"))] ?? shown[current];
  const flip = () => {
    const one = focused();
    if (!one || level() !== "reviewed") return;
    pick(one, !ticked.has(one.cluster));
  };
  const name = async () => {
    const one = focused();
    if (!one || level() !== "reviewed") return;
    const text = await ask(`Name ${clusterName(one)}`, { label: "Name", value: one.name ?? "", ok: "Name it" });
    if (text !== null && (await act("name", { group: one.cluster, name: text }))) await refresh();
  };
  const open = () => { const one = focused(); if (one) location.hash = `#/cluster/${level()}/${one.cluster}`; };
  const turn = (way) => foot.querySelector(`[data-page="${way}"]`)?.click();
  const keys = { j: () => step(1), ArrowRight: () => step(1), k: () => step(-1), ArrowLeft: () => step(-1), ArrowDown: () => step(columns()), ArrowUp: () => step(-columns()), x: flip, m: merge, b: () => ticked.size && junk(), n: name, Enter: open, Escape: clear, "]": () => turn("next"), "[": () => turn("back") };
  Object.entries(keys).forEach(([key, action]) => page.keys.set(key, action));

  const set = (field) => (event) => { page.remember({ [field]: event.target.value }); if (field === "level") clear(); load(); };
  const levels = [["reviewed", "as reviewed"], ...overview.levels.map((one) => [String(one.level), `level ${one.level} (${one.n_clusters.toLocaleString("en-US")})`]).reverse()];
  const sorts = SORTS.filter(([key]) => key !== "purity" || overview.has_labels);
  root.append(
    h("div", { class: "page-head" }, h("div", {}, h("h1", {}, "Clusters"), sub)),
    h("div", { class: "toolbar" },
      choice("Level", levels, level(), set("level")),
      choice("Sort", sorts, values.get("sort") ?? "size", set("sort")),
      h("label", {}, h("input", { type: "checkbox", checked: values.has("reverse"), onchange: (event) => { page.remember({ reverse: event.target.checked ? "true" : null }); load(); } }), "reversed"),
      choice("Show", STATES, values.get("state") ?? "all", set("state")),
      h("label", {}, "Size", h("input", { type: "number", min: 1, placeholder: "from", value: values.get("min_size") ?? "", onchange: set("min_size"), "aria-label": "Smallest size" }), h("input", { type: "number", min: 1, placeholder: "to", value: values.get("max_size") ?? "", onchange: set("max_size"), "aria-label": "Largest size" })),
      h("label", {}, "Find", h("input", { type: "search", placeholder: "name, #number, member id", value: values.get("search") ?? "", maxLength: 200, onchange: set("search"), "aria-label": "Find clusters" }))),
    list, foot);
  root.addEventListener("shown", () => {
    show();
    dropLost((cluster) => get(`clusters/reviewed/${cluster}`).catch((error) => error.status !== 404));
  });
  await load(Number(values.get("offset") ?? 0));
}

export function choice(label, options, value, onchange) {
  return h("label", {}, label, h("select", { onchange, "aria-label": label }, options.map(([key, text]) => h("option", { value: key, selected: key === value }, text))));
}
