// Routes, keys, theme and search. A view is a function (root, parameters, page) that fills root.

import { reviewEvents, redo, undo } from "./actions.js";
import { get } from "./api.js";
import { h, replace } from "./dom.js";
import { handOver } from "./handover.js";
import { empty, loading, showDialog } from "./parts.js";
import { startSearch } from "./search.js";
import { showCluster } from "./view_cluster.js";
import { showClusters } from "./view_clusters.js";
import { showCompare } from "./view_compare.js";
import { showMap } from "./view_map.js";
import { showOverview } from "./view_overview.js";
import { showPoint } from "./view_point.js";
import { showReview } from "./view_review.js";
import { showTree } from "./view_tree.js";

const ROUTES = [
  [/^\/?$/, "overview", showOverview],
  [/^\/clusters$/, "clusters", showClusters],
  [/^\/cluster\/(\w+)\/(\d+)$/, "clusters", showCluster],
  [/^\/point\/(\d+)$/, "clusters", showPoint],
  [/^\/tree$/, "tree", showTree],
  [/^\/map$/, "map", showMap],
  [/^\/review(?:\/(\w+))?$/, "review", showReview],
  [/^\/compare$/, "compare", showCompare],
];
const GO = { o: "#/", c: "#/clusters", h: "#/tree", m: "#/map", r: "#/review", p: "#/compare" };
const main = document.getElementById("main");

// A page object gives a view its keys, values that survive a redraw, and a signal for when the user
// leaves it. `page` handles keys, `coming` is being drawn, `shown` is visible. While a view is redrawn its
// old drawing stays in use, so these can be three different objects.
let page = null;
let coming = null;
let shown = null;
let waitingForGo = false;

const pathNow = () => location.hash.slice(1).split("?")[0] || "/";

function newPage(path, values, kept) {
  const left = new AbortController();
  const made = {
    address: location.hash,
    begun: performance.now(),
    keys: new Map(),
    values,
    kept,
    left: left.signal,
    leave: () => left.abort(),
    isHere: () => pathNow() === path,
    // A value that all drawings of a view share until another view is opened.
    keep(name, make) {
      if (!kept.has(name)) kept.set(name, make());
      return kept.get(name);
    },
    // Change the address without a new history entry and without a redraw.
    remember(changes) {
      if (left.signal.aborted || !made.isHere()) return;
      for (const [name, value] of Object.entries(changes)) {
        if (value === null || value === "" || value === undefined) values.delete(name);
        else values.set(name, value);
      }
      const before = location.hash;
      const text = values.toString();
      history.replaceState(null, "", `#${path}` + (text ? "?" + text : ""));
      made.address = location.hash;
      if (shown === made) main.dataset.shown = made.address;
      // A drawing that is under way was requested for the old address.
      if (coming !== made && location.hash !== before) redraw();
    },
    redraw,
  };
  return made;
}

// Draw the view of the address from the start.
function open() {
  page?.leave();
  for (const dialog of document.querySelectorAll("dialog[open]")) dialog.close();
  return draw(null);
}

// Redraw the view after a change. What the user ticks or types in the meantime is kept.
function redraw() {
  return page?.isHere() ? draw(page) : open();
}

async function draw(before) {
  const path = pathNow();
  const route = ROUTES.find(([pattern]) => pattern.test(path));
  const mine = newPage(path, new URLSearchParams(location.hash.split("?")[1] ?? ""), before?.kept ?? new Map());
  if (coming !== before) coming?.leave();
  coming = mine;
  if (!before) page = mine;
  for (const link of document.querySelectorAll("#nav a")) {
    if (link.dataset.view === route?.[1]) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (!route) {
    show(mine, empty("This page does not exist."));
    return;
  }
  const root = h("div", { class: "view", data: { view: route[1] } });
  const waiting = before ? 0 : setTimeout(() => mine === page && replace(main, loading()), 150);
  try {
    await route[2](root, path.match(route[0]).slice(1), mine);
  } catch (error) {
    replace(root, h("div", { class: "empty", role: "alert" }, error.message));
    if (!error.code) console.error(error);
  }
  clearTimeout(waiting);
  if (mine === coming) show(mine, root);
}

function show(mine, root) {
  if (page !== mine) page.leave();
  page = mine;
  if (shown?.kept === mine.kept) handOver(main, root);
  else replace(main, root);
  shown = mine;
  main.dataset.shown = mine.address;
  root.dispatchEvent(new Event("shown"));
  showTitle(root);
}

// The tab of the browser says which page it is.
function showTitle(root) {
  const heading = root.querySelector(".name-input")?.value || root.querySelector(".name-input")?.placeholder || root.querySelector("h1")?.textContent;
  document.title = [heading, runName, "Hi-LANDER"].filter((one, i, all) => one && all.indexOf(one) === i).join(" · ");
}

let runName = "";
let revision = 0;

// Other tabs and other processes change the review too, and another run may be served at this address.
function watch() {
  const events = new EventSource("api/events");
  let run = null;
  events.onmessage = async (event) => {
    const now = JSON.parse(event.data);
    if (run !== null && now.run !== run) return location.reload();
    run = now.run;
    if (now.revision <= revision) return;
    // An own action is known a moment later, when its answer arrives.
    await new Promise((resolve) => setTimeout(resolve, 500));
    if (now.revision <= revision) return;
    const overview = await get("overview").catch(() => null);
    if (!overview) return;
    revision = overview.review.revision;
    showReviewState(overview.review);
    redraw();
  };
  addEventListener("pagehide", () => events.close());
}

function showKeys() {
  const keys = [
    ["g then o c h m r p", "Overview, Clusters, Hierarchy, Map, Review, comPare"],
    ["/", "Search"], ["u / U", "Undo, redo"], ["t", "Light or dark"],
    ["j k or arrows", "Next, previous card"], ["Enter", "Open"], ["x", "Select"], ["[ ]", "Previous, next page"],
    ["m", "Merge the selected clusters"], ["n", "Name the cluster"], ["b", "Mark as junk"],
    ["s d k", "Review: same, different, skip"], ["Esc", "Clear the selection"],
  ];
  showDialog(
    h("div", { class: "stack" }, h("h2", {}, "Keys"),
      h("table", {}, keys.map(([key, text]) => h("tr", {}, h("td", {}, h("kbd", {}, key)), h("td", {}, text)))),
      h("p", { class: "muted" }, "Everything shown here is also ", h("a", { href: "api" }, "JSON under /api"), "."),
      h("form", { method: "dialog", class: "row end" }, h("button", { class: "button primary" }, "Close"))),
  );
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  localStorage.setItem("hilander-theme", theme);
  window.dispatchEvent(new Event("theme"));
}

const flipTheme = () => setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");

function onKey(event) {
  const typing = event.target.closest("input:not([type=checkbox]), textarea, select");
  if (event.key === "Escape" && typing) typing.blur();
  if (typing || document.querySelector("dialog[open]")) return;
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z") {
    event.preventDefault();
    event.shiftKey ? redo() : undo();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (waitingForGo && GO[event.key]) {
    waitingForGo = false;
    location.hash = GO[event.key];
    return;
  }
  waitingForGo = event.key === "g";
  const common = { "/": () => document.getElementById("search").focus(), u: () => undo(), U: redo, t: flipTheme, "?": showKeys };
  const action = page?.keys.get(event.key) ?? common[event.key];
  if (action && !waitingForGo) {
    if (event.key === "Enter" && event.target.closest("a, button")) return;
    event.preventDefault();
    action(event);
  }
}

function showReviewState(review) {
  document.getElementById("undo").disabled = !review.can_undo;
  document.getElementById("redo").disabled = !review.can_redo;
}

export function showBanner(overview) {
  const banner = document.getElementById("banner");
  const messages = [];
  if (overview.run_changed) messages.push("The run folder has changed. Restart the explorer to see the new run; your review is kept.");
  if (overview.review.n_conflicts) {
    messages.push(h("span", {}, `The run was clustered again. ${overview.review.n_conflicts} earlier decisions do not fit the new clusters. `, h("a", { href: "#/review/conflicts" }, "Show them")));
  }
  for (const note of overview.notes) messages.push(note);
  replace(banner, messages.map((one) => h("div", {}, one)));
  banner.hidden = messages.length === 0;
}

async function start() {
  // The access token is only needed to load the page; remove it from the history.
  if (location.search) history.replaceState(null, "", location.pathname + location.hash);
  const stored = localStorage.getItem("hilander-theme");
  const preferred = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  document.documentElement.dataset.theme = stored ?? preferred;
  document.getElementById("theme").addEventListener("click", flipTheme);
  document.getElementById("help").addEventListener("click", showKeys);
  // Its address would be read as the address of a view. It leads to what is worked on, if the view says what that is.
  document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); (main.querySelector("[data-start] :is(.card, button:enabled)") ?? main).focus(); });
  document.getElementById("undo").addEventListener("click", () => undo());
  document.getElementById("redo").addEventListener("click", redo);
  document.addEventListener("keydown", onKey);
  window.addEventListener("hashchange", () => { open(); scrollTo(0, 0); });
  reviewEvents.addEventListener("change", (event) => {
    revision = Math.max(revision, event.detail.review.revision);
    showReviewState(event.detail.review);
    // A drawing that was requested before the action may show the old state.
    if (coming !== shown || coming.begun > event.detail.sent) redraw();
  });
  reviewEvents.addEventListener("redraw", redraw);
  startSearch();
  open();
  try {
    const overview = await get("overview");
    document.getElementById("run-name").textContent = overview.name;
    runName = overview.name;
    revision = overview.review.revision;
    if (shown) showTitle(main);
    watch();
    showReviewState(overview.review);
    showBanner(overview);
  } catch {
    // the view shows the error
  }
}

start();
