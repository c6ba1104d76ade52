import { html } from "../../html.ts";
import { texts } from "../../texts.ts";

/** Shows a value in full, with null and the empty text distinguished from all others. */
export function comparedValue(value: string | null | undefined) {
  if (value == null) return html`<span class="quiet">${texts.editing.isNull}</span>`;
  return value === "" ? html`<span class="quiet">${texts.editing.emptyText}</span>` : value;
}
