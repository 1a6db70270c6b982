// The map of peaks, the most typical items. Hover over a peak to see it and its cluster; open the cluster from the side panel.

import { act } from "./actions.js";
import { get } from "./api.js";
import { rampCss } from "./colours.js";
import { count, h, plural, replace, share } from "./dom.js";
import { MapCanvas, readMap } from "./map_canvas.js";
import { MapCentres } from "./map_centres.js";
import { clusterLink, clusterName, empty, loading, thumb, thumbs } from "./parts.js";
import { pickCluster } from "./picker.js";
import { choice } from "./view_clusters.js";

const METHODS = { tsne: "t-SNE", umap: "UMAP", pca: "principal components" };

export async function showMap(root, _, page) {
  const box = h("div", { class: "map-box" }, loading());
  const side = h("aside", { class: "stack", style: { alignContent: "start" } });
  const legend = h("div", { class: "legend" });
  const sub = h("p", { class: "sub" }, "The map is being computed…");
  let canvas = null;
  let centres = null;
  let by = page.values.get("colour") ?? "cluster";
  let size = page.values.get("size") ?? "";
  let asked = 0;
  let pinned = -1;

  function colour(event) {
    by = event.target.value;
    page.remember({ colour: by === "cluster" ? null : by });
    canvas?.colourBy(by);
    showLegend();
  }

  function resize(event) {
    size = event.target.value;
    page.remember({ size });
    canvas?.sizeBy(size === "cluster");
  }

  function showLegend() {
    const texts = { cluster: "One colour for each cluster as reviewed.", level: "Highest level at which the point is the most typical item of a cluster: red is the first level, teal the last.", confidence: "Probability of the link that joined the item to its cluster: red is low." };
    replace(legend, h("span", {}, texts[by]), by !== "cluster" && h("div", { class: "ramp", style: { background: rampCss() } }));
  }

  // What was drawn around: its clusters can be merged.
  function showLasso(points, found) {
    const groups = [...new Set(found.map((i) => points.cluster[i]))];
    pinned = found[0];
    asked++;
    const merge = async () => (await act("merge", { groups })) && page.redraw();
    const rows = found.map((i) => points.row[i]);
    const move = async () => {
      const chosen = await pickCluster(`Move ${plural(rows.length, "item")}`, { rows: rows.slice(0, 10000) }, { ok: "Move to", canBeNew: true });
      if (chosen && (await act("move", chosen.isNew ? { rows } : { rows, to: chosen.cluster }))) page.redraw();
    };
    replace(side, h("div", { class: "panel stack", data: { lasso: found.length } },
      h("strong", {}, `${plural(found.length, "item")} of ${plural(groups.length, "cluster")}`),
      groups.slice(0, 12).map((one) => h("a", { href: clusterLink("reviewed", one) }, names.get(one) ?? `Cluster ${one}`)),
      groups.length > 12 && h("span", { class: "muted" }, `and ${count(groups.length - 12)} more`),
      h("button", { class: "button primary", disabled: groups.length < 2, onclick: merge, data: { action: "merge" } }, `Merge the ${count(groups.length)} clusters`),
      h("button", { class: "button", onclick: move, data: { action: "move" } }, "Move these items…")));
  }

  async function describe(points, i) {
    if (i < 0) return;
    const mine = ++asked;
    await new Promise((resolve) => setTimeout(resolve, 60));
    if (mine !== asked || page.left.aborted) return;
    const cluster = points.cluster[i];
    const [point, detail] = await Promise.all([get(`points/${points.row[i]}`), get(`clusters/reviewed/${cluster}`)]);
    if (mine !== asked) return;
    replace(side, h("div", { class: "panel stack" },
      h("div", { style: { width: "120px" } }, thumb(point)), h("strong", {}, point.id), point.label && h("span", { class: "muted" }, point.label),
      h("div", {}, h("a", { href: clusterLink("reviewed", cluster) }, clusterName({ ...detail })), h("span", { class: "muted" }, ` · ${plural(detail.size, "item")} · doubt ${share(detail.doubt)}`)),
      thumbs(detail.exemplars, { peak: true }),
      h("a", { class: "button", href: clusterLink("reviewed", cluster) }, "Open the cluster")));
  }

  const named = await get("clusters", { state: "named", limit: 200 });
  const names = new Map(named.items.map((one) => [one.cluster, one.name]));
  const lasso = h("button", { class: "button", "aria-pressed": "false", title: "Draw around points; Shift and drag does the same", onclick: () => { const on = lasso.getAttribute("aria-pressed") !== "true"; lasso.setAttribute("aria-pressed", String(on)); if (canvas) canvas.lassoMode = on; } }, "Select");
  root.append(
    h("div", { class: "page-head" }, h("div", {}, h("h1", {}, "Map"), sub),
      h("div", { class: "toolbar", style: { margin: 0 } }, choice("Colour", [["cluster", "cluster"], ["level", "level"], ["confidence", "confidence"]], by, colour), choice("Size", [["", "all equal"], ["cluster", "by cluster"]], size, resize), lasso,
        h("button", { class: "button", onclick: () => canvas?.zoomBy(1 / 1.6), "aria-label": "Zoom out" }, "−"), h("button", { class: "button", onclick: () => canvas?.zoomBy(1.6), "aria-label": "Zoom in" }, "+"), h("button", { class: "button", onclick: () => canvas?.home() }, "Whole map ", h("kbd", {}, "0")))),
    h("div", { class: "map-wrap" }, box, h("div", { class: "stack", style: { alignContent: "start" } }, legend, side)));
  replace(side, h("p", { class: "muted" }, "Hover over a point to see it and its cluster, click to pin it. Drag to move, Shift and drag to select, use the wheel to zoom, or use + − 0 and the arrow keys."));
  showLegend();
  root.addEventListener("shown", async () => {
    const map = await readMap(page).catch((error) => ({ points: null, reason: error.message }));
    if (page.left.aborted) return;
    if (!map.points) {
      sub.textContent = "";
      replace(box, empty(map.reason));
      return;
    }
    sub.textContent = `${count(map.points.n)} points: the most typical items of the clusters of level ${map.level}, placed by ${METHODS[map.method] ?? map.method}`;
    replace(box);
    // A click pins: the description stays until another click. A click beside the points lets go.
    const pin = (i) => {
      pinned = i;
      describe(map.points, i, true);
    };
    const hover = (i) => pinned < 0 && describe(map.points, i);
    canvas = new MapCanvas(box, map.points, { onhover: hover, onpick: pin, onlasso: (found) => showLasso(map.points, found), onview: () => centres?.follow() });
    centres = new MapCentres(canvas, named.items.map(({ cluster, name }) => ({ cluster, name })));
    box.append(centres.box);
    canvas.canvas.tabIndex = 0;
    canvas.canvas.setAttribute("aria-label", "Map of the most typical items");
    canvas.canvas.setAttribute("role", "img");
    canvas.colourBy(by);
    canvas.sizeBy(size === "cluster");
    page.left.addEventListener("abort", () => { canvas.close(); centres.close(); });
    Object.entries({ "+": () => canvas.zoomBy(1.6), "=": () => canvas.zoomBy(1.6), "-": () => canvas.zoomBy(1 / 1.6), 0: () => canvas.home(), ArrowLeft: () => canvas.moveBy(80, 0), ArrowRight: () => canvas.moveBy(-80, 0), ArrowUp: () => canvas.moveBy(0, 80), ArrowDown: () => canvas.moveBy(0, -80) }).forEach(([key, action]) => page.keys.set(key, action));
  });
}
