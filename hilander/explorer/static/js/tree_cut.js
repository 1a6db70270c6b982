// The merge tree, cut by a slider: the clusters change while it moves.

import { get } from "./api.js";
import { newestOnly } from "./busy.js";
import { clusterColour, css, isDark, rgbOf } from "./colours.js";
import { count, h, plural, replace, share } from "./dom.js";
import { empty, thumbs } from "./parts.js";

const WIDTH = 1200;

export function cutPanel(page) {
  const newest = newestOnly();
  const sub = h("p", { class: "sub", role: "status", data: { cut: "" } });
  const strip = h("div", { class: "cut-strip", role: "img", "aria-label": "Clusters, each as wide as it is large" });
  const cards = h("div", { class: "cut-cards" });
  const start = page.values.get("p") ?? "0.5";
  const slider = h("input", { type: "range", min: 0, max: 1, step: 0.01, value: start, "aria-label": "Probability of the cut", oninput: () => load() });
  const shown = h("output", { class: "num" });
  let total = 0;

  async function load() {
    const p = Number(slider.value);
    shown.textContent = share(p);
    const cut = await newest(get("cut", { p, min_size: Math.max(1, Math.floor(total / WIDTH)) })).catch((error) => ({ reason: error.message }));
    if (!cut) return;
    if (cut.reason) return replace(cards, empty(cut.reason));
    total = cut.n_points;
    page.remember({ p: p === 0.5 ? null : p });
    sub.textContent = `${plural(cut.n_clusters, "cluster")}, ${count(cut.n_singletons)} of one item. At 0.50 it is the last level; to the right, fewer merges are made.`;
    replace(strip, cut.bars.map((one) => h("span", { style: { left: `${(100 * one.start) / total}%`, width: `max(1px, calc(${(100 * one.size) / total}% - 1px))`, background: css(rgbOf(clusterColour(one.start, isDark()))) } })));
    replace(cards, cut.largest.map((one) => h("div", { class: "piece" }, h("strong", {}, plural(one.size, "item")), thumbs(one.exemplars, { strip: true }))));
  }

  slider.addEventListener("keydown", (event) => event.stopPropagation());
  load();
  return h("section", { class: "panel", style: { marginTop: "18px" } }, h("h2", {}, "Cut the tree anywhere"),
    h("label", { class: "cut-slider" }, "Merge what is at least this likely", slider, shown), sub, strip, cards);
}
