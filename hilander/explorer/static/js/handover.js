// What the user holds when a view is drawn again passes to the new drawing: the focus, and text that
// is typed but not yet sent. Without it the next letters of a name would be taken for keys.

const MARKS = ["aria-label", "data-cluster", "data-action", "data-merge", "data-verdict"];

// Puts `root` in the place of what `box` shows.
export function handOver(box, root) {
  const held = box.contains(document.activeElement) && box !== document.activeElement ? document.activeElement : null;
  const twin = held && findTwin(root, held);
  const typed = twin && isText(held) && held.value !== twin.value;
  if (typed) {
    // The old field must not send what is half typed when it goes.
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

// A browser tells a change only of text that was typed into that very field.
function passText(from, to) {
  let owed = true;
  const send = () => owed && to.dispatchEvent(new Event("change"));
  to.value = from.value;
  to.addEventListener("change", () => { owed = false; });
  to.addEventListener("blur", send);
  to.addEventListener("keydown", (event) => event.key === "Enter" && send());
}
