// The overview: clusters of each level, sizes, scores, map, settings.

import { get } from "./api.js";
import { count, h, plural, s, score, share } from "./dom.js";
import { card, empty } from "./parts.js";
import { MapCanvas, readMap } from "./map_canvas.js";

// Points of the small map: more would look the same.
const MOST_DOTS = 20000;

export async function showOverview(root, _, page) {
  const [overview, doubtful] = await Promise.all([get("overview"), get("clusters", { sort: "doubt", limit: 4 })]);
  root.append(
    h("div", { class: "page-head" }, h("div", {}, h("h1", {}, overview.name), h("p", { class: "sub" }, subtitle(overview))),
      h("div", { class: "row" }, h("a", { class: "button", href: "#/clusters" }, "Browse clusters"), h("a", { class: "button primary", href: "#/review" }, "Start reviewing"))),
    h("div", { class: "stack" },
      tiles(overview),
      h("div", { class: "two" },
        h("section", { class: "panel" }, h("h2", {}, "Levels"), levelTable(overview)),
        h("section", { class: "panel" }, h("h2", {}, "Cluster sizes"), histogram(overview.sizes))),
      h("div", { class: "two" },
        h("section", { class: "panel" }, h("div", { class: "spread" }, h("h2", {}, "Map"), h("a", { href: "#/map" }, "Open the map")), smallMap(root, page)),
        h("section", { class: "panel" }, h("h2", {}, "Settings and times"), details(overview.details))),
      h("section", {}, h("div", { class: "spread", style: { margin: "8px 0 12px" } }, h("h2", {}, "Most doubtful clusters"), h("a", { href: "#/clusters?sort=doubt" }, "All by doubt")),
        h("div", { class: "cards" }, doubtful.items.map((one) => card(one, "reviewed"))))),
  );
  if (overview.metrics_pending) {
    const again = setTimeout(() => page.left.aborted || page.redraw(), 1500);
    page.left.addEventListener("abort", () => clearTimeout(again));
  }
}

function subtitle(overview) {
  const parts = [`${plural(overview.n_points, "item")} in ${plural(overview.n_clusters, "cluster")}`, plural(overview.n_levels, "level")];
  if (overview.n_identities) parts.push(`${plural(overview.n_identities, "true identity", "true identities")}`);
  return parts.join(" · ");
}

function tiles(overview) {
  const scores = overview.levels.at(-1).scores;
  const values = [
    [count(overview.n_clusters), "clusters now"],
    [count(overview.n_singletons), "of one item"],
    [count(overview.largest), "items in the largest"],
    [count(overview.review.n_actions), overview.review.n_actions === 1 ? "review action" : "review actions"],
  ];
  if (scores) values.push([score(scores.pairwise_f), "pairwise F"], [score(scores.bcubed_f), "BCubed F"], [score(scores.nmi), "NMI"]);
  else if (overview.metrics_pending) values.push(["…", "scores are being computed"]);
  return h("div", { class: "tiles" }, values.map(([value, label]) => h("div", { class: "tile" }, h("div", { class: "value" }, value), h("div", { class: "label" }, label))));
}

function levelTable(overview) {
  const scored = overview.levels[0].scores !== null;
  const heads = ["Level", "Clusters", "Largest", "Quality", ...(scored ? ["Pairwise F", "BCubed F", "NMI"] : [])];
  const rows = overview.levels.map((one) =>
    h("tr", {},
      h("td", {}, h("a", { href: `#/clusters?level=${one.level}` }, `Level ${one.level}`), one.level === overview.early_stop_level && overview.n_levels > 1 && [" ", h("span", { class: "chip", title: "Early stopping would end at this level" }, "early stop")]),
      [count(one.n_clusters), count(one.largest), share(one.quality), ...(scored ? [one.scores.pairwise_f, one.scores.bcubed_f, one.scores.nmi].map(score) : [])].map((v) => h("td", { class: "right" }, v))));
  return h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, heads.map((name, i) => h("th", { class: i ? "right" : "" }, name)))), h("tbody", {}, rows)));
}

export function histogram(bins) {
  const width = 520;
  const height = 210;
  const most = Math.max(...bins.map((one) => one.clusters));
  const step = (width - 16) / bins.length;
  const bars = bins.map((one, i) => {
    const tall = one.clusters ? Math.max(2, (one.clusters / most) * (height - 58)) : 0;
    const x = 8 + i * step;
    const name = one.low === one.high ? String(one.low) : `${count(one.low)}–${count(one.high)}`;
    return s("g", {},
      s("rect", { class: "bar", x: x + 2, y: height - 30 - tall, width: Math.max(step - 4, 1), height: tall, rx: 3 }, s("title", {}, `${name} items: ${plural(one.clusters, "cluster")}, ${plural(one.points, "item")}`)),
      one.clusters && s("text", { class: "label", x: x + step / 2, y: height - 36 - tall, "text-anchor": "middle" }, count(one.clusters)),
      s("text", { x: x + step / 2, y: height - 14, "text-anchor": "middle" }, name));
  });
  return s("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Number of clusters by size" },
    s("line", { class: "axis", x1: 8, x2: width - 8, y1: height - 29.5, y2: height - 29.5 }), bars,
    s("text", { x: width - 8, y: height - 1, "text-anchor": "end" }, "items in a cluster"));
}

function smallMap(root, page) {
  const box = h("div", { class: "map-box", style: { height: "300px", minHeight: "0", border: "0" } });
  root.addEventListener("shown", async () => {
    const map = await readMap(page, MOST_DOTS).catch(() => null);
    if (page.left.aborted) return;
    if (!map?.points) {
      box.replaceWith(empty(map?.reason ?? "There is no map."));
      return;
    }
    const canvas = new MapCanvas(box, map.points, { still: true });
    canvas.colourBy("cluster");
    page.left.addEventListener("abort", () => canvas.close());
  });
  return box;
}

function details(run) {
  const settings = Object.entries(run.settings ?? {}).filter(([, value]) => value !== null && typeof value !== "object");
  const stages = Array.isArray(run.stages) ? run.stages : [];
  if (!settings.length && !stages.length) return h("p", { class: "muted" }, "The run has no settings.");
  const slowest = Math.max(...stages.map((one) => one.seconds), 1e-9);
  return h("div", { class: "stack" },
    h("dl", { class: "facts" }, settings.map(([name, value]) => [h("dt", {}, name), h("dd", { class: "mono" }, String(value))])),
    stages.length > 0 && h("div", { class: "meters" }, stages.map((one) =>
      h("div", { class: "meter", style: { gridTemplateColumns: "110px 1fr 64px" } }, h("span", {}, one.stage), h("span", { class: "track" }, h("span", { class: "fill", style: { width: `${(100 * one.seconds) / slowest}%`, display: "block" } })), h("span", { class: "amount" }, `${Number(one.seconds).toFixed(2)} s`)))),
    run.versions && h("p", { class: "muted" }, Object.entries(run.versions).map(([name, value]) => `${name} ${value}`).join(" · ")));
}
