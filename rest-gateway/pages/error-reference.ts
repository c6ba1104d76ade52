import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { GatewayRoutes } from "../http/router.ts";
import { type Html, html, makeRenderPage } from "./page.ts";

/** The documentation is the only list of errors. */
const SOURCE = join(import.meta.dirname, "../../docs/errors.md");
const GROUP_SECTION = /^## (?<title>.+)\n\n(?<about>[^|]+)\n\n(?<table>(?:\|.*\n)+)/gm;
const ERROR_ROW =
  /^\| `(?<code>\w+)` \| (?<status>[^|]*) \| (?<where>[^|]*) \| (?<meaning>[^|]*) \| (?<remedy>[^|]*) \|$/gm;

/** `/docs/errors`: the target of `documentation` in error bodies. */
export function errorReferenceRoutes(): GatewayRoutes {
  const content = html`<p>The error codes of all interfaces, what they mean, and what to do.</p>
${readErrors().map(toSection)}`;
  const render = makeRenderPage({ formTargets: [] });
  const headers = { "Cache-Control": "public, max-age=3600" };
  const page = render({ title: "Errors", content, isWide: true, headers });
  return { "/docs/errors": { GET: () => page } };
}

function toSection({ title, about, entries }: ErrorGroup): Html {
  return html`<h2>${title}</h2>
<p>${inCode(about)}</p>
<div class="scroll" tabindex="0" role="region" aria-label="${title}"><table>
<thead><tr><th scope="col">Code</th><th scope="col">Status</th><th scope="col">Interfaces</th><th scope="col">Meaning</th><th scope="col">What to do</th></tr></thead>
<tbody>
${entries.map(
  ({ code, status, where, meaning, remedy }) => html`<tr id="${code}">
<th scope="row"><a href="#${code}"><code>${code}</code></a></th><td>${status}</td><td>${where}</td><td>${inCode(meaning)}</td><td>${inCode(remedy)}</td>
</tr>`,
)}
</tbody></table></div>`;
}

/** Text between backticks becomes code. */
function inCode(text: string): Html[] {
  return text.split("`").map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : html`${part}`));
}

type ErrorGroup = { readonly title: string; readonly about: string; readonly entries: readonly ErrorEntry[] };

type ErrorEntry = {
  readonly code: string;
  /** HTTP statuses, such as `400, 401`; empty for codes of GraphQL only. */
  readonly status: string;
  /** The interfaces that use the code. */
  readonly where: string;
  readonly meaning: string;
  readonly remedy: string;
};

export function readErrors(): ErrorGroup[] {
  return [...readFileSync(SOURCE, "utf8").matchAll(GROUP_SECTION)].map(({ groups }) => {
    const { title, about, table } = groups as { title: string; about: string; table: string };
    return { title, about, entries: [...table.matchAll(ERROR_ROW)].map((line) => ({ ...line.groups }) as ErrorEntry) };
  });
}
