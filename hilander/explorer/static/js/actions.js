// Actions of the review: send the request, show what it did, offer to undo it.

import { post } from "./api.js";
import { h } from "./dom.js";
import { toast } from "./parts.js";

export const reviewEvents = new EventTarget();

export async function act(kind, body = {}, { quiet = false } = {}) {
  const sent = performance.now();
  try {
    const result = await post(`review/${kind}`, body);
    reviewEvents.dispatchEvent(new CustomEvent("change", { detail: { review: result.review, sent } }));
    if (!quiet) {
      const undoable = !["undo", "redo"].includes(kind);
      const button = undoable && h("button", { class: "button small", onclick: () => undo(result.seq) }, "Undo");
      toast(result.text[0].toUpperCase() + result.text.slice(1), { action: button });
    }
    return result;
  } catch (error) {
    toast(error.message, { bad: true });
    return null;
  }
}

// Undo one action by its number; without it, the last one.
export async function undo(seq = null) {
  const result = await act("undo", Number.isInteger(seq) ? { seq } : {});
  if (result) reviewEvents.dispatchEvent(new Event("redraw"));
}

export async function redo() {
  const result = await act("redo");
  if (result) reviewEvents.dispatchEvent(new Event("redraw"));
}
