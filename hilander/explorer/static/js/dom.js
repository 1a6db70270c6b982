// Build elements from data. Text is only inserted as text nodes and properties, so an id or a name that
// contains HTML is shown as text.

const SVG = "http://www.w3.org/2000/svg";

export function h(tag, props = {}, ...children) {
  return fill(document.createElement(tag), props, children);
}

export function s(tag, props = {}, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(props)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined) node.setAttribute(name, value);
  }
  append(node, children);
  return node;
}

function fill(node, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(node.style, value);
    else if (name === "data") Object.assign(node.dataset, value);
    else if (name === "class") node.className = value;
    else if (name in node && name !== "list" && name !== "role") node[name] = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  append(node, children);
  return node;
}

function append(node, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

export function replace(node, ...children) {
  node.replaceChildren();
  append(node, children);
  return node;
}

export const count = (n) => Number(n).toLocaleString("en-US");
export const plural = (n, one, many = one + "s") => `${count(n)} ${Number(n) === 1 ? one : many}`;
export const share = (p) => (p === null || p === undefined ? "–" : Number(p).toFixed(2));
// Scores have one more digit than probabilities, everywhere.
export const score = (v) => (v === null || v === undefined ? "–" : Number(v).toFixed(3));
