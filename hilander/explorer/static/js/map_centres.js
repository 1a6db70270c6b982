// Pictures and names at the centres of clusters, once there is room for them.

import { get } from "./api.js";
import { h, replace } from "./dom.js";

const MOST = 40;
// Milliseconds without a movement after which others are chosen; meanwhile those shown move along.
const REST = 120;
// Distance between two of them, in CSS pixels.
const [WIDE, TALL] = [84, 62];
// From this zoom on, clusters without a name have a picture too.
const CLOSE = 1.5;

export class MapCentres {
  constructor(canvas, named) {
    this.canvas = canvas;
    this.centres = findCentres(canvas.points);
    this.known = new Map(named.map((one) => [one.cluster, one]));
    this.shown = [];
    this.timer = 0;
    this.box = h("div", { class: "centres", "aria-hidden": "true" });
  }

  close() {
    clearTimeout(this.timer);
  }

  // The view has changed: move what is shown, and choose again when the view rests.
  follow() {
    for (const one of this.shown) this.place(one);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.choose(), REST);
  }

  place({ node, x, y }) {
    const [left, top] = this.canvas.screen(x, y);
    node.style.transform = `translate(${left.toFixed(1)}px, ${top.toFixed(1)}px) translate(-50%, calc(-100% - 8px))`; // above the points
  }

  choose() {
    const { clientWidth, clientHeight } = this.canvas.box;
    const all = this.canvas.view.zoom >= CLOSE || this.centres.length <= MOST;
    const chosen = [];
    for (const one of this.centres) {
      if (!all && !this.known.get(one.cluster)?.name) continue;
      const [x, y] = this.canvas.screen(one.x, one.y);
      if (x < 0 || y < 0 || x > clientWidth || y > clientHeight) continue;
      if (chosen.some((other) => Math.abs(other.left - x) < WIDE && Math.abs(other.top - y) < TALL)) continue;
      chosen.push({ ...one, left: x, top: y });
      if (chosen.length >= MOST) break;
    }
    this.draw(chosen);
    this.read(chosen);
  }

  draw(chosen) {
    this.shown = chosen.map((one) => ({ ...one, node: this.label(one.cluster) }));
    replace(this.box, this.shown.map(({ node }) => node));
    for (const one of this.shown) this.place(one);
  }

  label(cluster) {
    const known = this.known.get(cluster);
    return h("span", { data: { cluster } }, known?.image && h("img", { src: known.image, alt: "" }), h("span", {}, known?.name ?? `#${cluster}`));
  }

  async read(chosen) {
    const missing = chosen.map((one) => one.cluster).filter((cluster) => this.known.get(cluster)?.image === undefined);
    if (!missing.length) return;
    const found = await get("map/centres", { clusters: missing.join(",") }).catch(() => null);
    if (!found) return;
    for (const one of found.items) this.known.set(one.cluster, one);
    if (chosen.every((one, i) => this.shown[i]?.cluster === one.cluster)) this.draw(chosen);
  }
}

// Mean place of the points of each cluster, the clusters with the most points first.
function findCentres({ n, x, y, cluster }) {
  const most = cluster.reduce((a, b) => Math.max(a, b), 0) + 1;
  const [xs, ys, counts] = [new Float64Array(most), new Float64Array(most), new Uint32Array(most)];
  for (let i = 0; i < n; i++) {
    xs[cluster[i]] += x[i];
    ys[cluster[i]] += y[i];
    counts[cluster[i]]++;
  }
  const found = [];
  for (let one = 0; one < most; one++) if (counts[one]) found.push({ cluster: one, x: xs[one] / counts[one], y: ys[one] / counts[one], n: counts[one] });
  return found.sort((a, b) => b.n - a.n);
}
