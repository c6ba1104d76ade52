import type { Routes } from "../gateway.ts";
import { type Html, html } from "../pages/html.ts";
import { makeRenderPage } from "../pages/page.ts";
import { type Chapter, readErrors } from "./read-errors.ts";

/** Where the `documentation` of an error body points. */
export function errorReferenceRoutes(): Routes {
  const content = html`<p>Every code that a client can be told, on which interface, what it means, and what to do.</p>
${readErrors().map(toSection)}`;
  const render = makeRenderPage({ formTargets: [] });
  const headers = { "Cache-Control": "public, max-age=3600" };
  const answer = render({ title: "Errors", content, isWide: true, headers });
  return { "/docs/errors": { GET: () => answer } };
}

function toSection({ title, about, entries }: Chapter): Html {
  return html`<h2>${title}</h2>
<p>${inCode(about)}</p>
<div class="scroll" tabindex="0" role="region" aria-label="${title}"><table>
<thead><tr><th scope="col">Code</th><th scope="col">Status</th><th scope="col">Where</th><th scope="col">What it means</th><th scope="col">What to do</th></tr></thead>
<tbody>
${entries.map(
  ({ code, status, where, meaning, remedy }) => html`<tr id="${code}">
<th scope="row"><a href="#${code}"><code>${code}</code></a></th><td>${status}</td><td>${where}</td><td>${inCode(meaning)}</td><td>${inCode(remedy)}</td>
</tr>`,
)}
</tbody></table></div>`;
}

/** Between backticks is code. */
function inCode(text: string): Html[] {
  return text.split("`").map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : html`${part}`));
}
