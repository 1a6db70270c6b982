// One point: its columns, its clusters, its neighbours, and its path to its peak.

import { act } from "./actions.js";
import { get } from "./api.js";
import { h, plural, share } from "./dom.js";
import { clusterLink, empty, showFullSize, thumb } from "./parts.js";
import { pickCluster } from "./picker.js";

export async function showPoint(root, [number], page) {
  const point = await get(`points/${number}`);
  const move = async () => {
    const rows = [point.row];
    const chosen = await pickCluster(`Move ${point.id}`, { rows }, { ok: "Move to", canBeNew: true });
    if (chosen && (await act("move", chosen.isNew ? { rows } : { rows, to: chosen.cluster }))) page.redraw();
  };
  if (point.image) page.keys.set("f", () => showFullSize(point));
  root.append(
    h("div", { class: "page-head" },
      h("div", {}, h("div", { class: "crumbs" }, h("a", { href: clusterLink("reviewed", point.cluster) }, point.cluster_name ?? `Cluster ${point.cluster}`), h("span", {}, "›"), h("span", {}, "item")), h("h1", {}, point.id)),
      h("button", { class: "button", onclick: move, data: { action: "move" } }, "Move to…")),
    h("div", { class: "stack" },
      h("div", { class: "two" },
        h("section", { class: "panel row", style: { alignItems: "flex-start", gap: "20px" } }, h("div", { class: "big-thumb" }, point.image ? h("button", { class: "thumb", title: "Show in full size (f)", "aria-label": "Show in full size", onclick: () => showFullSize(point), data: { action: "full-size" } }, h("img", { src: point.image, alt: point.id })) : thumb(point, { link: false })), facts(point)),
        h("section", { class: "panel" }, h("h2", {}, "Its cluster at each level"), levels(point))),
      h("section", { class: "panel" }, h("h2", {}, "Path to the most typical item of its cluster"), path(point)),
      h("section", { class: "panel" }, h("h2", {}, "Neighbours"), neighbours(point))));
}

function facts(point) {
  const known = { ...(point.label ? { "true label": point.label } : {}), density: share(point.density), confidence: share(point.confidence), row: point.row, ...point.facts };
  if (point.label) delete known.label;
  return h("dl", { class: "facts", style: { flex: "1", minWidth: "180px" } }, Object.entries(known).map(([name, value]) => [h("dt", {}, name), h("dd", {}, String(value))]));
}

function levels(point) {
  return h("table", {}, h("thead", {}, h("tr", {}, h("th", {}, "Level"), h("th", {}, "Cluster"), h("th", { class: "right" }, "Items"), h("th", {}, ""))),
    h("tbody", {}, point.levels.map((one) => h("tr", {}, h("td", {}, one.level), h("td", {}, h("a", { href: clusterLink(one.level, one.cluster) }, `#${one.cluster}`)), h("td", { class: "right" }, one.size.toLocaleString("en-US")), h("td", {}, one.is_peak && h("span", { class: "chip accent" }, "most typical"))))));
}

function path(point) {
  if (!point.path.length) return h("p", { class: "muted" }, "It is the most typical item of its cluster.");
  const steps = point.path.flatMap((one) => [
    h("div", { class: "step" }, h("span", {}, "→"), h("span", { class: one.linkage < 0.9 ? "chip warn" : "chip" }, share(one.linkage)), h("span", {}, `level ${one.level}`)),
    h("div", { class: "step" }, thumb(one.item), h("span", {}, one.item.id))]);
  return h("div", { class: "path" }, h("div", { class: "step" }, thumb(point), h("span", {}, point.id)), steps);
}

function neighbours(point) {
  if (!point.neighbours.length) return empty("The run kept no graph, so neighbours are not known.");
  return h("div", { class: "scroll" }, h("table", {},
    h("thead", {}, h("tr", {}, ["", "Id", "Similarity", "Likely the same", "Cluster", ""].map((name, i) => h("th", { class: i === 2 || i === 3 ? "right" : "" }, name)))),
    h("tbody", {}, point.neighbours.map((one) => h("tr", {},
      h("td", { style: { width: "56px" } }, thumb(one)),
      h("td", {}, h("a", { href: `#/point/${one.row}` }, one.id), one.label && h("div", { class: "muted" }, one.label)),
      h("td", { class: "right" }, share(one.affinity)), h("td", { class: "right" }, share(one.linkage)),
      h("td", {}, h("a", { href: clusterLink("reviewed", one.cluster) }, `#${one.cluster}`)),
      h("td", {}, one.is_parent && h("span", { class: "chip accent" }, "linked to it"), !one.same_cluster && h("span", { class: "chip warn" }, "other cluster")))))),
    h("p", { class: "muted" }, `${plural(point.neighbours.length, "nearest neighbour")} by cosine similarity. “Likely the same” is the estimated probability that the two are of one identity.`));
}
