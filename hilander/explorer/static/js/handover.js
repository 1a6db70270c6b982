// A redraw keeps the focus and text that is typed but not yet sent. Otherwise the next letters of a name
// would act as keys.

const MARKS = ["aria-label", "data-cluster", "data-action", "data-merge", "data-verdict"];

// Replace the content of `box` with `root`.
export function handOver(box, root) {
  const held = box.contains(document.activeElement) && box !== document.activeElement ? document.activeElement : null;
  const twin = held && findTwin(root, held);
  const typed = twin && isText(held) && held.value !== twin.value;
  if (typed) {
    // The old field must not send unfinished text when it is removed.
    for (const kind of ["change", "blur"]) held.addEventListener(kind, (event) => event.stopImmediatePropagation(), true);
    passText(held, twin);
  }
  box.replaceChildren(root);
  twin?.focus({ preventScroll: true });
  if (typed && twin.type !== "number") twin.setSelectionRange(held.selectionStart, held.selectionEnd);
}

function findTwin(root, node) {
  const mark = MARKS.find((name) => node.hasAttribute(name));
  return mark ? root.querySelector(`${node.localName}[${mark}="${CSS.escape(node.getAttribute(mark))}"]`) : null;
}

const isText = (node) => node.matches("input:not([type=checkbox])");

// A browser only reports a change of text that was typed into the same field.
function passText(from, to) {
  let unsent = true;
  const send = () => unsent && to.dispatchEvent(new Event("change"));
  to.value = from.value;
  to.addEventListener("change", () => { unsent = false; });
  to.addEventListener("blur", send);
  to.addEventListener("keydown", (event) => event.key === "Enter" && send());
}
