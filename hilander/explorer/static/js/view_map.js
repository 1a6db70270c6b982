// The map of peaks. Hover over a peak to see it and its cluster; open the cluster from the side panel.

import { get } from "./api.js";
import { rampCss } from "./colours.js";
import { count, h, plural, replace, share } from "./dom.js";
import { MapCanvas, readMap } from "./map_canvas.js";
import { clusterLink, clusterName, empty, loading, thumb, thumbs } from "./parts.js";
import { choice } from "./view_clusters.js";

const METHODS = { tsne: "t-SNE", umap: "UMAP", pca: "principal components" };

export async function showMap(root, _, page) {
  const box = h("div", { class: "map-box" }, loading());
  const side = h("aside", { class: "stack", style: { alignContent: "start" } });
  const legend = h("div", { class: "legend" });
  const sub = h("p", { class: "sub" }, "The map is being computed…");
  let canvas = null;
  let by = page.values.get("colour") ?? "cluster";
  let asked = 0;

  function colour(event) {
    by = event.target.value;
    page.remember({ colour: by === "cluster" ? null : by });
    canvas?.colourBy(by);
    showLegend();
  }

  function showLegend() {
    const texts = { cluster: "One colour for each cluster as reviewed.", level: "Highest level at which a point is a peak: red is the first level, teal the last.", confidence: "Probability of the link that joined the peak: red is low." };
    replace(legend, h("span", {}, texts[by]), by !== "cluster" && h("div", { class: "ramp", style: { background: rampCss() } }));
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

  root.append(
    h("div", { class: "page-head" }, h("div", {}, h("h1", {}, "Map"), sub),
      h("div", { class: "toolbar", style: { margin: 0 } }, choice("Colour", [["cluster", "cluster"], ["level", "level"], ["confidence", "confidence"]], by, colour),
        h("button", { class: "button", onclick: () => canvas?.zoomBy(1 / 1.6), "aria-label": "Zoom out" }, "−"), h("button", { class: "button", onclick: () => canvas?.zoomBy(1.6), "aria-label": "Zoom in" }, "+"), h("button", { class: "button", onclick: () => canvas?.home() }, "Whole map ", h("kbd", {}, "0")))),
    h("div", { class: "map-wrap" }, box, h("div", { class: "stack", style: { alignContent: "start" } }, legend, side)));
  replace(side, h("p", { class: "muted" }, "Hover over a peak to see it and its cluster. Drag to move, use the wheel to zoom, or use + − 0 and the arrow keys."));
  showLegend();
  root.addEventListener("shown", async () => {
    const map = await readMap(page).catch((error) => ({ points: null, reason: error.message }));
    if (page.left.aborted) return;
    if (!map.points) {
      sub.textContent = "";
      replace(box, empty(map.reason));
      return;
    }
    sub.textContent = `${count(map.points.n)} peaks of level ${map.level}, placed by ${METHODS[map.method] ?? map.method}`;
    replace(box);
    canvas = new MapCanvas(box, map.points, { onhover: (i) => describe(map.points, i), onpick: (i) => describe(map.points, i) });
    canvas.canvas.tabIndex = 0;
    canvas.canvas.setAttribute("aria-label", "Map of peaks");
    canvas.canvas.setAttribute("role", "img");
    canvas.colourBy(by);
    page.left.addEventListener("abort", () => canvas.close());
    Object.entries({ "+": () => canvas.zoomBy(1.6), "=": () => canvas.zoomBy(1.6), "-": () => canvas.zoomBy(1 / 1.6), 0: () => canvas.home(), ArrowLeft: () => canvas.moveBy(80, 0), ArrowRight: () => canvas.moveBy(-80, 0), ArrowUp: () => canvas.moveBy(0, 80), ArrowDown: () => canvas.moveBy(0, -80) }).forEach(([key, action]) => page.keys.set(key, action));
  });
}
