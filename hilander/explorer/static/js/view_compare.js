// Compare with true labels, another run or another level: list what one splits and the other merges.

import { get } from "./api.js";
import { newestOnly } from "./busy.js";
import { css, ramp } from "./colours.js";
import { count, h, plural, replace, score } from "./dom.js";
import { clusterLink, empty, loading, pager, thumbs } from "./parts.js";
import { tabList } from "./tabs.js";
import { choice } from "./view_clusters.js";

const LIMIT = 12;

export async function showCompare(root, _, page) {
  const overview = await get("overview");
  const choices = overview.compare_with.map((one) => [one.key, one.name]);
  const body = h("div", { class: "stack" });
  const newest = newestOnly();
  let key = page.values.get("with") ?? choices[0][0];
  let kind = page.values.get("kind") ?? "split";

  async function load() {
    replace(body, loading());
    const comparison = await newest(get("compare", { key }));
    if (!comparison) return;
    const newestPage = newestOnly();
    const list = h("div");
    const foot = h("div");
    const tabs = h("div");
    async function differences(offset) {
      const found = await newestPage(get("compare/differences", { key, kind, offset, limit: LIMIT }));
      if (!found) return;
      const held = tabs.contains(document.activeElement);
      replace(tabs, tabList("Differences", [["split", `We merge, they split (${count(comparison.n_split)})`], ["merge", `They merge, we split (${count(comparison.n_merged)})`]], kind, (one) => { kind = one; page.remember({ kind }); differences(0); }));
      if (held) tabs.querySelector("[aria-selected=true]").focus();
      replace(list, found.items.length ? found.items.map(difference) : empty("No difference of this kind."));
      replace(foot, found.total > LIMIT ? pager(found, LIMIT, differences) : "");
    }
    const jump = (cluster) => { location.hash = clusterLink("reviewed", cluster); };
    replace(body, tiles(comparison),
      comparison.matrix.rows.length > 0 && h("section", { class: "panel" }, h("h2", {}, "Where they differ most"), h("p", { class: "muted" }, "Rows are our clusters, columns are theirs. A cell is the number of shared items. Click a row to open the cluster."), matrix(comparison.matrix, jump)),
      h("section", { class: "panel" }, tabs, list, foot));
    await differences(0);
  }

  root.append(h("div", { class: "page-head" }, h("div", {}, h("h1", {}, "Compare"), h("p", { class: "sub" }, "The reviewed clusters (ours) against another partition of the same items (theirs).")),
    h("div", { class: "toolbar", style: { margin: 0 } }, choice("With", choices, key, (event) => { key = event.target.value; page.remember({ with: key }); load(); }))), body);
  await load();
}

function tiles(comparison) {
  const values = [[count(comparison.n_ours), "our clusters"], [count(comparison.n_theirs), "theirs"], [count(comparison.n_identical), `identical, ${plural(comparison.points_identical, "item")}`], [count(comparison.n_split), "ours that they split"], [count(comparison.n_merged), "theirs that we split"], [score(comparison.scores.pairwise_f), "pairwise F"], [score(comparison.scores.bcubed_f), "BCubed F"]];
  return h("div", { class: "tiles" }, values.map(([value, label]) => h("div", { class: "tile" }, h("div", { class: "value" }, value), h("div", { class: "label" }, label))));
}

function matrix(comparison, jump) {
  const cells = comparison.rows.map(() => comparison.columns.map(() => 0));
  for (const [row, column, n] of comparison.cells) cells[row][column] = n;
  return h("div", { class: "scroll" }, h("table", { class: "matrix" },
    h("thead", {}, h("tr", {}, h("th"), comparison.columns.map((name) => h("th", { title: name }, h("span", {}, name))))),
    h("tbody", {}, comparison.rows.map((cluster, i) => {
      const most = Math.max(...cells[i]);
      return h("tr", { style: { cursor: "pointer" }, onclick: () => jump(cluster) }, h("th", {}, h("a", { href: clusterLink("reviewed", cluster) }, `#${cluster}`)),
        cells[i].map((n) => h("td", n ? { style: { background: css(ramp(0.45 + 0.5 * (n / most))), color: n / most > 0.6 ? "#fff" : "#10172a" } } : { class: "none" }, n || "")));
    }))));
}

function difference(one) {
  const title = one.kind === "split"
    ? h("span", {}, h("a", { href: clusterLink("reviewed", one.cluster) }, `#${one.cluster}`), ` holds ${plural(one.size, "item")} of ${one.n_pieces} of theirs`)
    : h("span", {}, `${one.other} is spread over ${one.n_pieces} of our clusters, ${plural(one.size, "item")}`);
  return h("div", { class: "diff" }, h("div", { class: "row" }, title, h("span", { class: "chip warn" }, `${count(one.misplaced)} misplaced`)),
    h("div", { class: "pieces" }, one.pieces.map((piece) => h("div", { class: "piece" }, h("div", { class: "spread" }, one.kind === "split" ? h("span", {}, piece.other) : h("a", { href: clusterLink("reviewed", piece.cluster) }, `#${piece.cluster}`), h("span", { class: "muted" }, count(piece.count))), thumbs(piece.exemplars, { strip: true })))));
}
