// The map, drawn pixel by pixel into one image: 100,000 points take a few milliseconds.

import { get, getBytes } from "./api.js";
import { clusterColour, isDark, ramp, rgbOf } from "./colours.js";

const CELLS = 128;

export async function readMap(page) {
  for (;;) {
    const first = await get("map", { limit: 1 });
    if (first.pending && !page.left.aborted) {
      await new Promise((resolve) => setTimeout(resolve, 700));
      continue;
    }
    if (!first.total) return { points: null, reason: first.reason, method: null };
    const bytes = await getBytes("map.bin");
    const n = first.total;
    const column = (place, Kind) => new Kind(bytes, place * 4 * n, n);
    const points = { n, row: column(0, Int32Array), x: column(1, Float32Array), y: column(2, Float32Array), cluster: column(3, Int32Array), level: column(4, Int32Array), confidence: column(5, Float32Array) };
    return { points, method: first.method, level: first.level, reason: null };
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
    this.cells = this.sortIntoCells();
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
    const kept = new Map();
    for (let i = 0; i < n; i++) {
      let rgb;
      if (by === "cluster") {
        rgb = kept.get(cluster[i]);
        if (!rgb) kept.set(cluster[i], (rgb = rgbOf(clusterColour(cluster[i], dark))));
      } else rgb = ramp(by === "level" ? level[i] / top : confidence[i]);
      this.colours[i] = (255 << 24) | (rgb[2] << 16) | (rgb[1] << 8) | rgb[0];
    }
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
    const image = context.createImageData(width, height);
    const pixels = new Uint32Array(image.data.buffer);
    const { n, x, y } = this.points;
    const scale = this.scale();
    const left = width / 2 - this.view.x * scale;
    const top = height / 2 - this.view.y * scale;
    const stamp = disc(this.radius());
    for (let i = 0; i < n; i++) {
      const px = Math.round(left + x[i] * scale);
      const py = Math.round(top + y[i] * scale);
      if (px < 6 || py < 6 || px >= width - 6 || py >= height - 6) continue;
      const at = py * width + px;
      const colour = this.colours[i];
      for (let j = 0; j < stamp.length; j += 2) pixels[at + stamp[j] * width + stamp[j + 1]] = colour;
    }
    context.putImageData(image, 0, 0);
    if (this.marked >= 0) this.paintMarked(context, left, top, scale);
    if (this.lasso) this.paintLasso(context);
    this.onview?.();
    this.canvas.dataset.milliseconds = (performance.now() - started).toFixed(1);
  }

  paintMarked(context, left, top, scale) {
    const { n, x, y, cluster } = this.points;
    context.strokeStyle = isDark() ? "#ffffff" : "#111827";
    context.lineWidth = 1.5 * this.ratio;
    for (let i = 0, drawn = 0; i < n && drawn < 2000; i++) {
      if (cluster[i] !== cluster[this.marked]) continue;
      drawn++;
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

  sortIntoCells() {
    const cells = new Map();
    for (let i = 0; i < this.points.n; i++) {
      const key = this.cellOf(this.points.x[i], this.points.y[i]);
      const kept = cells.get(key);
      if (kept) kept.push(i);
      else cells.set(key, [i]);
    }
    return cells;
  }

  cellOf(x, y) {
    return Math.floor(((x + 1) / 2) * CELLS) * (CELLS + 1) + Math.floor(((y + 1) / 2) * CELLS);
  }

  nearest(clientX, clientY) {
    const rect = this.canvas.getBoundingClientRect();
    const scale = this.scale();
    const x = ((clientX - rect.left) * this.ratio - this.canvas.width / 2) / scale + this.view.x;
    const y = ((clientY - rect.top) * this.ratio - this.canvas.height / 2) / scale + this.view.y;
    const reach = (14 * this.ratio) / scale;
    const steps = Math.min(6, Math.ceil((reach * CELLS) / 2));
    const width = 2 / CELLS;
    let best = -1;
    let least = reach * reach;
    for (let a = -steps; a <= steps; a++) {
      for (let b = -steps; b <= steps; b++) {
        for (const i of this.cells.get(this.cellOf(x + a * width, y + b * width)) ?? []) {
          const far = (this.points.x[i] - x) ** 2 + (this.points.y[i] - y) ** 2;
          if (far < least) [least, best] = [far, i];
        }
      }
    }
    return best;
  }

  // Points inside a polygon of the screen.
  inside(polygon) {
    const rect = this.canvas.getBoundingClientRect();
    const scale = this.scale();
    const corners = polygon.map(([x, y]) => [((x - rect.left) * this.ratio - this.canvas.width / 2) / scale + this.view.x, ((y - rect.top) * this.ratio - this.canvas.height / 2) / scale + this.view.y]);
    const found = [];
    for (let i = 0; i < this.points.n; i++) {
      const [x, y] = [this.points.x[i], this.points.y[i]];
      let inside = false;
      for (let a = 0, b = corners.length - 1; a < corners.length; b = a++) {
        const [ax, ay] = corners[a];
        const [bx, by] = corners[b];
        if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) inside = !inside;
      }
      if (inside) found.push(i);
    }
    return found;
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
        const found = this.inside(this.lasso);
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

function disc(radius) {
  const offsets = [];
  for (let a = -radius; a <= radius; a++) for (let b = -radius; b <= radius; b++) if (a * a + b * b <= radius * radius + 0.5) offsets.push(a, b);
  return offsets;
}
