// The hierarchy as an icicle. All levels share one order of the points, so the view is a range of it.

import { get } from "./api.js";
import { newestOnly } from "./busy.js";
import { css, ramp, rampCss } from "./colours.js";
import { count, h, plural, replace, share } from "./dom.js";
import { clusterLink } from "./parts.js";
import { cutPanel } from "./tree_cut.js";

const NARROWEST = 5;

export async function showTree(root, _, page) {
  const box = h("div", { class: "icicle", tabIndex: 0, role: "group", "aria-label": "Hierarchy; arrows move, plus and minus zoom" });
  const names = h("div", { class: "level-names" });
  const crumbs = h("div", { class: "crumbs" });
  const window_ = h("div");
  const sub = h("p", { class: "sub" });
  let view = { start: Number(page.values.get("start") ?? 0), end: page.values.has("end") ? Number(page.values.get("end")) : null };
  let total = 0;
  let clicked = null;
  const trail = [];
  const newest = newestOnly();

  async function load() {
    const width = Math.max(box.clientWidth, 320);
    const span = (view.end ?? (total || Infinity)) - view.start;
    const min = Number.isFinite(span) ? Math.floor((span * NARROWEST) / width) : null;
    const tree = await newest(get("tree", { start: view.start, end: view.end, min_size: min ?? 1_000_000_000 }));
    if (!tree) return;
    if (min === null) {
      total = tree.n_points;
      return load();
    }
    total = tree.n_points;
    view = { start: tree.start, end: tree.end };
    page.remember({ start: view.start || null, end: view.end === total ? null : view.end });
    draw(tree, width);
  }

  function draw(tree, width) {
    const tall = Math.max(34, Math.min(84, 480 / tree.levels.length));
    const scale = width / (tree.end - tree.start);
    replace(names, tree.levels.map((one) => h("span", { style: { height: `${tall}px` } }, `level ${one.level}`)));
    replace(box, tree.levels.map((level) => h("div", { class: "level", style: { height: `${tall}px` }, data: { level: level.level } }, level.rest.map((one) => rest(one, tree, scale)), level.bars.map((one) => bar(one, level.level, tree, scale, tall)))));
    sub.textContent = `${count(tree.end - tree.start)} of ${plural(tree.n_points, "item")} shown; the last level is on top, each bar is as wide as its cluster is large. Paler bars stand for several small clusters.`;
    Object.assign(window_.style, { left: `${(100 * tree.start) / total}%`, width: `${(100 * (tree.end - tree.start)) / total}%` });
    replace(crumbs, h("a", { href: "#/tree", onclick: (event) => { event.preventDefault(); trail.length = 0; go(0, total); } }, "Everything"),
      trail.map((one, i) => [h("span", {}, "›"), h("a", { href: "#/tree", onclick: (event) => { event.preventDefault(); trail.length = i + 1; go(one.start, one.start + one.size); } }, `#${one.cluster} of level ${one.level}`)]));
  }

  function rest(one, tree, scale) {
    const text = `${plural(one.count, "cluster")} with ${plural(one.size, "item")} in total`;
    const left = Math.max((one.start - tree.start) * scale, 0);
    const right = Math.min((one.start + one.size - tree.start) * scale, (tree.end - tree.start) * scale);
    return h("button", { class: "bar rest", title: text, "aria-label": text, tabIndex: -1, style: { left: `${left}px`, width: `${Math.max(right - left - 1, 1)}px`, background: css(ramp(one.weakest)) }, onclick: () => { clicked = null; go(one.start, one.start + one.size); } });
  }

  function bar(one, level, tree, scale, tall) {
    const left = Math.max((one.start - tree.start) * scale, 0);
    const right = Math.min((one.start + one.size - tree.start) * scale, (tree.end - tree.start) * scale);
    const wide = right - left - 1;
    const colour = css(ramp(one.weakest));
    const text = `${one.name ?? "#" + one.cluster} · ${plural(one.size, "item")} · weakest merge ${share(one.weakest)}`;
    const zoom = () => {
      clicked = { level, cluster: one.cluster };
      // A click on a cluster that fills the view opens it.
      if (one.start === tree.start && one.start + one.size === tree.end) location.hash = clusterLink(level, one.cluster);
      else { trail.push({ ...one, level }); go(one.start, one.start + one.size); }
    };
    return h("button", { class: "bar", title: text, "aria-label": text, style: { left: `${left}px`, width: `${Math.max(wide, 1)}px`, background: colour }, onclick: zoom, data: { cluster: one.cluster } },
      wide > 46 && one.image && h("img", { src: one.image, alt: "", loading: "lazy" }),
      wide > 90 && h("span", {}, one.name ?? `#${one.cluster}`, tall > 44 && h("br"), tall > 44 && plural(one.size, "item")));
  }

  function go(start, end) {
    view = { start: Math.max(0, Math.round(start)), end: Math.min(total, Math.round(end)) };
    if (view.end <= view.start) view.end = view.start + 1;
    return load();
  }

  function zoom(factor, at = 0.5) {
    const span = view.end - view.start;
    const next = Math.max(2, Math.min(total, span * factor));
    const middle = view.start + span * at;
    const start = Math.max(0, Math.min(total - next, middle - next * at));
    return go(start, start + next);
  }

  const move = (by) => {
    const span = view.end - view.start;
    const start = Math.max(0, Math.min(total - span, view.start + by * span));
    return go(start, start + span);
  };
  Object.entries({ "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), 0: () => { trail.length = 0; go(0, total); }, ArrowLeft: () => move(-0.25), ArrowRight: () => move(0.25) }).forEach(([key, action]) => page.keys.set(key, action));
  // Not "dblclick": the first click redraws the bars, perhaps before the second click.
  box.addEventListener("mousedown", (event) => { if (event.detail === 2 && clicked) location.hash = clusterLink(clicked.level, clicked.cluster); });
  let wheel = 0;
  box.addEventListener("wheel", (event) => {
    event.preventDefault();
    clearTimeout(wheel);
    const at = (event.clientX - box.getBoundingClientRect().left) / box.clientWidth;
    const factor = event.deltaY > 0 ? 1.4 : 1 / 1.4;
    wheel = setTimeout(() => zoom(factor, at), 30);
  }, { passive: false });

  root.append(
    h("div", { class: "page-head" }, h("div", {}, h("h1", {}, "Hierarchy"), sub),
      h("div", { class: "row" }, h("button", { class: "button", onclick: () => zoom(2), "aria-label": "Zoom out" }, "−"), h("button", { class: "button", onclick: () => zoom(0.5), "aria-label": "Zoom in" }, "+"), h("button", { class: "button", onclick: () => { trail.length = 0; go(0, total); } }, "Everything ", h("kbd", {}, "0")))),
    crumbs, h("div", { class: "icicle-wrap" }, names, box), h("div", { class: "minimap" }, window_),
    h("div", { class: "legend scale", "aria-label": "Colours" }, h("span", {}, "weakest merge 0.00"), h("div", { class: "ramp", style: { background: rampCss() } }), h("span", {}, "1.00")),
    h("p", { class: "muted" }, "The colour is the probability of the weakest merge inside. Click to zoom in, click again to open. The wheel, + − and the arrow keys move the view."));
  root.append(cutPanel(page));
  root.addEventListener("shown", load);
  const resized = () => load();
  window.addEventListener("resize", resized);
  page.left.addEventListener("abort", () => window.removeEventListener("resize", resized));
}
