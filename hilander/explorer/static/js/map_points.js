// The points of the map, sorted by the cells of a grid: what is in view is a few ranges of them.

const CELLS = 128;

// Columns of the same points, cell by cell. `starts` has the first point of each cell and the end.
export function sortIntoCells(columns) {
  const { n, x, y } = columns;
  const cell = new Uint16Array(n);
  const starts = new Uint32Array(CELLS * CELLS + 1);
  for (let i = 0; i < n; i++) {
    cell[i] = place(y[i]) * CELLS + place(x[i]);
    starts[cell[i] + 1]++;
  }
  for (let i = 0; i < CELLS * CELLS; i++) starts[i + 1] += starts[i];
  const next = starts.slice(0, -1);
  const order = new Uint32Array(n);
  for (let i = 0; i < n; i++) order[next[cell[i]]++] = i;
  const sorted = { n, starts };
  for (const [name, values] of Object.entries(columns)) {
    if (name === "n") continue;
    sorted[name] = new values.constructor(n);
    for (let i = 0; i < n; i++) sorted[name][i] = values[order[i]];
  }
  return sorted;
}

// Ranges [first, end) of the points whose cells touch a box, one for each row of cells.
export function rangesOf({ starts }, left, top, right, bottom) {
  const ranges = [];
  const [from, to] = [place(left), place(right)];
  for (let row = place(top); row <= place(bottom); row++) {
    const first = starts[row * CELLS + from];
    const end = starts[row * CELLS + to + 1];
    if (end > first) ranges.push([first, end]);
  }
  return ranges;
}

// The nearest point within reach, or -1.
export function nearestPoint(points, x, y, reach) {
  let best = -1;
  let least = reach * reach;
  for (const [first, end] of rangesOf(points, x - reach, y - reach, x + reach, y + reach)) {
    for (let i = first; i < end; i++) {
      const far = (points.x[i] - x) ** 2 + (points.y[i] - y) ** 2;
      if (far < least) [least, best] = [far, i];
    }
  }
  return best;
}

// Points inside a polygon.
export function pointsInside(points, corners) {
  const [xs, ys] = [corners.map(([x]) => x), corners.map(([, y]) => y)];
  const found = [];
  for (const [first, end] of rangesOf(points, Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys))) {
    for (let i = first; i < end; i++) if (isInside(points.x[i], points.y[i], corners)) found.push(i);
  }
  return found;
}

function isInside(x, y, corners) {
  let inside = false;
  for (let a = 0, b = corners.length - 1; a < corners.length; b = a++) {
    const [ax, ay] = corners[a];
    const [bx, by] = corners[b];
    if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) inside = !inside;
  }
  return inside;
}

// Row or column of the cells of a coordinate in [-1, 1].
function place(value) {
  return Math.max(0, Math.min(CELLS - 1, Math.floor(((value + 1) / 2) * CELLS)));
}
