import { type Children, html } from "../html.ts";
import { texts } from "../texts.ts";

/** The heading of a page, with its actions at the end of the line. */
export function PageHeader({ title, children }: { readonly title: Children; readonly children?: Children }) {
  return html`
    <header class="page-header">
      <h1>${title}</h1>
      <div class="page-actions">${children}</div>
    </header>
  `;
}

export function Loading({ text = texts.components.loading }: { readonly text?: string }) {
  return html`<p class="loading" role="status">${text}</p>`;
}

/** The text of an empty page, with instructions. */
export function Empty({ children }: { readonly children?: Children }) {
  return html`<div class="empty">${children}</div>`;
}
