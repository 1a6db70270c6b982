// The page of the API, drawn from its OpenAPI description.

import { h, replace } from "./dom.js";

const theme = localStorage.getItem("hilander-theme") ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
document.documentElement.dataset.theme = theme;

async function show() {
  const description = await (await fetch("api/openapi.json")).json();
  const routes = Object.entries(description.paths).flatMap(([path, methods]) => Object.entries(methods).map(([method, route]) => ({ path, method, ...route })));
  const byTag = Map.groupBy ? Map.groupBy(routes, (one) => one.tags?.[0] ?? "other") : new Map([["all", routes]]);
  replace(document.getElementById("main"),
    h("div", { class: "page-head" }, h("div", {}, h("h1", {}, description.info.title), h("p", { class: "sub" }, description.info.description), h("p", { class: "muted" }, "An error is always ", h("code", {}, '{"error": {"code": …, "message": …}}'), ". Requests that change something need the header x-hilander-token; its value is in the page. ", h("a", { href: "api/openapi.json" }, "OpenAPI description")))),
    h("div", { class: "stack" }, [...byTag].map(([tag, list]) => h("section", { class: "panel", style: { background: "var(--surface)", border: "1px solid var(--border)", borderRadius: "10px", padding: "16px 18px" } }, h("h2", {}, tag), list.map(route)))));
}

function route(one) {
  const parameters = one.parameters ?? [];
  return h("div", { class: "diff" },
    h("div", {}, h("span", { class: "method" }, one.method.toUpperCase()), h("code", {}, one.path)),
    h("div", { style: { whiteSpace: "pre-line" } }, one.description ?? one.summary),
    parameters.length > 0 && h("table", {}, h("tbody", {}, parameters.map((p) => h("tr", {}, h("td", {}, h("code", {}, p.name)), h("td", { class: "muted" }, p.in), h("td", { class: "muted" }, p.schema?.type ?? p.schema?.anyOf?.map((t) => t.type).join(" or ") ?? ""), h("td", {}, p.description ?? (p.schema?.default !== undefined ? `default ${p.schema.default}` : p.required ? "required" : "")))))));
}

show();
