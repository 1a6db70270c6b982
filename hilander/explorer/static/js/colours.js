// Colours of clusters and of values in [0, 1].

const GOLDEN = 0.618033988749895;

export function clusterColour(cluster, dark) {
  const hue = ((cluster * GOLDEN) % 1) * 360;
  const lightness = [dark ? 62 : 48, dark ? 70 : 56, dark ? 54 : 42][cluster % 3];
  return [hue, 62, lightness];
}

export function rgbOf([hue, saturation, lightness]) {
  const s = saturation / 100;
  const l = lightness / 100;
  const k = (n) => (n + hue / 30) % 12;
  const f = (n) => Math.round(255 * (l - s * Math.min(l, 1 - l) * Math.max(-1, Math.min(k(n) - 3, 9 - k(n), 1))));
  return [f(0), f(8), f(4)];
}

// From red over sand to teal: low to high. Readers with common colour blindness can distinguish them.
const STOPS = [[205, 72, 40], [232, 160, 74], [214, 205, 150], [92, 176, 150], [18, 120, 120]];

export function ramp(value) {
  const place = Math.max(0, Math.min(1, value)) * (STOPS.length - 1);
  const low = Math.min(Math.floor(place), STOPS.length - 2);
  const part = place - low;
  return STOPS[low].map((v, i) => Math.round(v + (STOPS[low + 1][i] - v) * part));
}

export const css = ([r, g, b]) => `rgb(${r} ${g} ${b})`;
export const rampCss = () => `linear-gradient(90deg, ${STOPS.map(css).join(", ")})`;
export const isDark = () => document.documentElement.dataset.theme === "dark";
