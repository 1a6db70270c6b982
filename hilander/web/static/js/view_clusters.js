// Clusters as cards: sorted, searched, filtered, selected and merged.

import { act } from "./actions.js";
import { get } from "./api.js";
import { h, plural, replace } from "./dom.js";
import { ask, card, clusterName, empty, pager } from "./parts.js";

const LIMIT = 24;
const SORTS = [["size", "largest"], ["doubt", "most doubtful"], ["quality", "best"], ["purity", "most mixed"], ["number", "number"]];
const STATES = [["all", "all"], ["named", "named"], ["unnamed", "not named"], ["junk", "junk"], ["edited", "edited"], ["mixed", "mixed"]];

export async function showClusters(root, _, page) {
  const overview = await get("overview");
  const values = page.values;
  const selected = new Map();
  const list = h("div", { class: "cards" });
  const foot = h("div");
  const sub = h("p", { class: "sub" });
  const level = () => values.get("level") ?? "reviewed";
  let shown = [];
  let current = -1;

  async function load(offset = 0) {
    page.remember({ offset: offset || null });
    const asked = Object.fromEntries(["level", "sort", "reverse", "search", "min_size", "max_size", "state"].map((name) => [name, values.get(name)]));
    const found = await get("clusters", { ...asked, offset, limit: LIMIT });
    shown = found.items;
    current = -1;
    sub.textContent = `${plural(found.total, "cluster")} ${level() === "reviewed" ? "as reviewed" : `of level ${level()}`}`;
    replace(list, shown.map((one) => card(one, level(), { pick: level() === "reviewed" ? pick : null, selected: selected.has(one.cluster) })));
    replace(foot, found.total ? pager(found, LIMIT, (to) => { load(to); scrollTo(0, 0); }) : empty("No cluster fits. Change the filters."));
  }

  function pick(one, on) {
    if (on) selected.set(one.cluster, one);
    else selected.delete(one.cluster);
    list.querySelector(`[data-cluster="${one.cluster}"]`)?.classList.toggle("selected", on);
    bar();
  }

  function clear() {
    selected.clear();
    list.querySelectorAll(".card.selected").forEach((node) => {
      node.classList.remove("selected");
      node.querySelector("input").checked = false;
    });
    bar();
  }

  async function merge() {
    if (selected.size < 2) return;
    if (await act("merge", { groups: [...selected.keys()] })) {
      selected.clear();
      bar();
      await load(Number(values.get("offset") ?? 0));
    }
  }

  async function junk() {
    for (const one of selected.values()) await act("junk", { group: one.cluster, junk: !one.junk }, { quiet: selected.size > 1 });
    clear();
    await load(Number(values.get("offset") ?? 0));
  }

  function bar() {
    document.querySelector(".action-bar")?.remove();
    if (!selected.size) return;
    document.body.append(
      h("div", { class: "action-bar", role: "toolbar", "aria-label": "Selected clusters" },
        h("strong", {}, `${selected.size} selected`),
        h("button", { class: "button primary", disabled: selected.size < 2, onclick: merge, data: { action: "merge" } }, "Merge ", h("kbd", {}, "m")),
        h("button", { class: "button", onclick: junk, data: { action: "junk" } }, "Junk ", h("kbd", {}, "b")),
        h("button", { class: "button", onclick: clear }, "Clear ", h("kbd", {}, "Esc"))));
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
    const on = !selected.has(one.cluster);
    list.querySelector(`[data-cluster="${one.cluster}"] input`).checked = on;
    pick(one, on);
  };
  const name = async () => {
    const one = focused();
    if (!one || level() !== "reviewed") return;
    const text = await ask(`Name ${clusterName(one)}`, { label: "Name", value: one.name ?? "", ok: "Name it" });
    if (text !== null && (await act("name", { group: one.cluster, name: text }))) await load(Number(values.get("offset") ?? 0));
  };
  const open = () => { const one = focused(); if (one) location.hash = `#/cluster/${level()}/${one.cluster}`; };
  const turn = (way) => foot.querySelector(`[data-page="${way}"]`)?.click();
  const keys = { j: () => step(1), ArrowRight: () => step(1), k: () => step(-1), ArrowLeft: () => step(-1), ArrowDown: () => step(columns()), ArrowUp: () => step(-columns()), x: flip, m: merge, b: () => selected.size && junk(), n: name, Enter: open, Escape: clear, "]": () => turn("next"), "[": () => turn("back") };
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
  page.left.addEventListener("abort", () => document.querySelector(".action-bar")?.remove());
  await load(Number(values.get("offset") ?? 0));
}

export function choice(label, options, value, onchange) {
  return h("label", {}, label, h("select", { onchange, "aria-label": label }, options.map(([key, text]) => h("option", { value: key, selected: key === value }, text))));
}
