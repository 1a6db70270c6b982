// The map, drawn pixel by pixel into one image: a million points take some milliseconds.

import { get, getBytes } from "./api.js";
import { clusterColour, isDark, ramp, rgbOf } from "./colours.js";
import { nearestPoint, pointsInside, rangesOf, sortIntoCells } from "./map_points.js";

// Columns of map.bin, with 4 bytes an entry.
const COLUMNS = { row: Int32Array, x: Float32Array, y: Float32Array, cluster: Int32Array, level: Int32Array, confidence: Float32Array, size: Int32Array };
// Points are kept off the rim by more than the radius of the largest dot.
const RIM = 12;
const MOST_RINGS = 2000;

export async function readMap(page, most = null) {
  for (;;) {
    const first = await get("map", { limit: 1 });
    if (first.pending && !page.left.aborted) {
      await new Promise((resolve) => setTimeout(resolve, 700));
      continue;
    }
    if (!first.total) return { points: null, reason: first.reason, method: null };
    const bytes = await getBytes("map.bin", { most });
    const names = Object.keys(COLUMNS);
    const n = bytes.byteLength / 4 / names.length;
    const columns = Object.fromEntries(names.map((name, i) => [name, new COLUMNS[name](bytes, i * 4 * n, n)]));
    return { points: sortIntoCells({ n, ...columns }), total: first.total, method: first.method, level: first.level, reason: null };
  }
}

export class MapCanvas {
  constructor(box, points, { still = false, onhover = null, onpick = null, onlasso = null, onview = null } = {}) {
    this.box = box;
    this.points = points;
    this.canvas = document.createElement("canvas");
    box.append(this.canvas);
    this.view = { x: 0, y: 0, zoom: 1 };
    this.colours = new Uint32Array(points.n);
    this.marked = -1;
    this.ringed = [];
    this.bySize = false;
    this.redraw = () => { this.resize(); this.paint(); this.later(); };
    this.observer = new ResizeObserver(this.redraw);
    this.observer.observe(box);
    this.themed = () => { this.colourBy(this.by); };
    window.addEventListener("theme", this.themed);
    this.onview = onview;
    this.lasso = null;
    this.pinned = -1;
    if (!still) this.listen(onhover, onpick, onlasso);
  }

  close() {
    this.observer.disconnect();
    window.removeEventListener("theme", this.themed);
  }

  colourBy(by) {
    this.by = by;
    const { n, cluster, level, confidence } = this.points;
    const dark = isDark();
    const top = Math.max(1, level.reduce((a, b) => Math.max(a, b), 0));
    const kept = new Uint32Array(by === "cluster" ? cluster.reduce((a, b) => Math.max(a, b), 0) + 1 : 0);
    const packed = ([r, g, b]) => (255 << 24) | (b << 16) | (g << 8) | r;
    for (let i = 0; i < n; i++) {
      if (by === "cluster") this.colours[i] = kept[cluster[i]] ||= packed(rgbOf(clusterColour(cluster[i], dark)));
      else this.colours[i] = packed(ramp(by === "level" ? level[i] / top : confidence[i]));
    }
    this.later();
  }

  // Dots of one size, or larger ones for larger clusters, which are drawn first.
  sizeBy(bySize) {
    this.bySize = bySize;
    this.layers ??= bySize ? layersBySize(this.points) : null;
    this.later();
  }

  resize() {
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    const { clientWidth, clientHeight } = this.box;
    this.ratio = ratio;
    this.canvas.width = Math.max(1, Math.round(clientWidth * ratio));
    this.canvas.height = Math.max(1, Math.round(clientHeight * ratio));
  }

  later() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => { this.waiting = false; this.paint(); });
  }

  scale() {
    return 0.47 * Math.min(this.canvas.width, this.canvas.height) * this.view.zoom;
  }

  paint() {
    const started = performance.now();
    const { width, height } = this.canvas;
    const context = this.canvas.getContext("2d");
    if (this.image?.width !== width || this.image?.height !== height) this.image = context.createImageData(width, height);
    const pixels = new Uint32Array(this.image.data.buffer);
    pixels.fill(0);
    const scale = this.scale();
    const left = width / 2 - this.view.x * scale;
    const top = height / 2 - this.view.y * scale;
    const radius = this.radius();
    if (this.bySize) for (let more = this.layers.length - 1; more >= 0; more--) this.paintLayer(pixels, this.layers[more], radius + Math.min(more, radius), left, top, scale);
    else this.paintAll(pixels, radius, left, top, scale);
    context.putImageData(this.image, 0, 0);
    if (this.marked >= 0) this.paintMarked(context, left, top, scale);
    if (this.lasso) this.paintLasso(context);
    this.onview?.();
    this.canvas.dataset.milliseconds = (performance.now() - started).toFixed(1);
    this.canvas.dataset.frames = Number(this.canvas.dataset.frames ?? 0) + 1;
  }

  // All points whose cells are in view.
  paintAll(pixels, radius, left, top, scale) {
    const { width, height } = this.canvas;
    const { x, y } = this.points;
    const { colours } = this;
    const stamp = disc(radius, width);
    const [right, bottom] = [width - RIM, height - RIM];
    for (const [first, end] of rangesOf(this.points, -left / scale, -top / scale, (width - left) / scale, (height - top) / scale)) {
      for (let i = first; i < end; i++) {
        const px = (left + x[i] * scale) | 0;
        const py = (top + y[i] * scale) | 0;
        if (px < RIM || py < RIM || px >= right || py >= bottom) continue;
        const at = py * width + px;
        const colour = colours[i];
        for (let j = 0; j < stamp.length; j++) pixels[at + stamp[j]] = colour;
      }
    }
  }

  paintLayer(pixels, layer, radius, left, top, scale) {
    const { width, height } = this.canvas;
    const { x, y } = this.points;
    const { colours } = this;
    const stamp = disc(radius, width);
    const [right, bottom] = [width - RIM, height - RIM];
    for (let k = 0; k < layer.length; k++) {
      const i = layer[k];
      const px = (left + x[i] * scale) | 0;
      const py = (top + y[i] * scale) | 0;
      if (px < RIM || py < RIM || px >= right || py >= bottom) continue;
      const at = py * width + px;
      const colour = colours[i];
      for (let j = 0; j < stamp.length; j++) pixels[at + stamp[j]] = colour;
    }
  }

  paintMarked(context, left, top, scale) {
    const { x, y } = this.points;
    context.strokeStyle = isDark() ? "#ffffff" : "#111827";
    context.lineWidth = 1.5 * this.ratio;
    for (const i of this.ringed) {
      context.beginPath();
      context.arc(left + x[i] * scale, top + y[i] * scale, (i === this.marked ? 8 : 5) * this.ratio, 0, 7);
      context.stroke();
    }
  }

  paintLasso(context) {
    const rect = this.canvas.getBoundingClientRect();
    context.strokeStyle = isDark() ? "#ffffff" : "#111827";
    context.lineWidth = 1.5 * this.ratio;
    context.setLineDash([6, 4]);
    context.beginPath();
    for (const [x, y] of this.lasso) context.lineTo((x - rect.left) * this.ratio, (y - rect.top) * this.ratio);
    context.stroke();
    context.setLineDash([]);
  }

  radius() {
    const density = Math.sqrt(this.points.n) / (12 * Math.sqrt(this.view.zoom));
    return Math.max(1, Math.min(5, Math.round((6 - Math.log2(1 + density)) * (this.ratio / 1.4))));
  }

  // Place on the map of a place on the screen.
  placeOf(clientX, clientY) {
    const rect = this.canvas.getBoundingClientRect();
    const scale = this.scale();
    return [((clientX - rect.left) * this.ratio - this.canvas.width / 2) / scale + this.view.x, ((clientY - rect.top) * this.ratio - this.canvas.height / 2) / scale + this.view.y];
  }

  nearest(clientX, clientY) {
    return nearestPoint(this.points, ...this.placeOf(clientX, clientY), (14 * this.ratio) / this.scale());
  }

  // Place on the screen, in CSS pixels of the box.
  screen(x, y) {
    const scale = this.scale();
    return [((x - this.view.x) * scale + this.canvas.width / 2) / this.ratio, ((y - this.view.y) * scale + this.canvas.height / 2) / this.ratio];
  }

  zoomBy(factor, clientX = null, clientY = null) {
    const rect = this.canvas.getBoundingClientRect();
    const dx = clientX === null ? 0 : (clientX - rect.left - rect.width / 2) * this.ratio;
    const dy = clientY === null ? 0 : (clientY - rect.top - rect.height / 2) * this.ratio;
    const before = this.scale();
    this.view.zoom = Math.max(0.6, Math.min(400, this.view.zoom * factor));
    const after = this.scale();
    this.view.x += dx / before - dx / after;
    this.view.y += dy / before - dy / after;
    this.later();
  }

  moveBy(dx, dy) {
    this.view.x -= (dx * this.ratio) / this.scale();
    this.view.y -= (dy * this.ratio) / this.scale();
    this.later();
  }

  home() {
    this.view = { x: 0, y: 0, zoom: 1 };
    this.later();
  }

  mark(i) {
    if (i === this.marked) return;
    this.marked = i;
    this.ringed = [];
    const { n, cluster } = this.points;
    for (let j = 0; i >= 0 && j < n && this.ringed.length < MOST_RINGS; j++) if (cluster[j] === cluster[i]) this.ringed.push(j);
    this.later();
  }

  listen(onhover, onpick, onlasso) {
    let held = null;
    this.canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoomBy(Math.exp(-event.deltaY * 0.0016), event.clientX, event.clientY);
    }, { passive: false });
    this.canvas.addEventListener("pointerdown", (event) => {
      held = { x: event.clientX, y: event.clientY, moved: 0 };
      if (onlasso && (event.shiftKey || this.lassoMode)) this.lasso = [[event.clientX, event.clientY]];
      this.canvas.setPointerCapture(event.pointerId);
    });
    this.canvas.addEventListener("pointermove", (event) => {
      if (this.lasso) {
        this.lasso.push([event.clientX, event.clientY]);
        this.later();
        return;
      }
      if (held) {
        this.moveBy(event.clientX - held.x, event.clientY - held.y);
        held = { x: event.clientX, y: event.clientY, moved: held.moved + Math.abs(event.clientX - held.x) + Math.abs(event.clientY - held.y) };
        return;
      }
      const i = this.nearest(event.clientX, event.clientY);
      if (this.pinned < 0) this.mark(i);
      onhover?.(i);
    });
    this.canvas.addEventListener("pointerup", (event) => {
      if (this.lasso) {
        const found = pointsInside(this.points, this.lasso.map(([x, y]) => this.placeOf(x, y)));
        this.lasso = held = null;
        this.later();
        if (found.length) onlasso(found);
        return;
      }
      const clicked = held && held.moved < 5;
      held = null;
      if (!clicked) return;
      const i = this.nearest(event.clientX, event.clientY);
      this.pinned = i;
      this.mark(i);
      onpick?.(i);
    });
  }
}

// Offsets of the pixels of a dot in an image of a given width.
function disc(radius, width) {
  const offsets = [];
  for (let a = -radius; a <= radius; a++) for (let b = -radius; b <= radius; b++) if (a * a + b * b <= radius * radius + 0.5) offsets.push(a * width + b);
  return Int32Array.from(offsets);
}

// Points by how much larger their dots are: a step for each fourfold size of the cluster.
function layersBySize({ n, size }) {
  const layers = [];
  for (let i = 0; i < n; i++) (layers[Math.floor(Math.log2(Math.max(1, size[i])) / 2)] ??= []).push(i);
  return Array.from(layers, (layer) => Uint32Array.from(layer ?? []));
}
