import type { Catalog } from "../../engine/catalog/catalog.ts";
import { hasSmartTag, spokenComment } from "../../engine/catalog/spoken-comment.ts";
import type { Table } from "../../engine/catalog/tables.ts";
import type { Config } from "../../engine/config/config.ts";
import type { Routes } from "../gateway.ts";
import { type Html, html } from "../pages/html.ts";
import { makeRenderPage } from "../pages/page.ts";
import { COPY } from "./copy.ts";
import type { Door } from "./doors.ts";
import { sampleRequests } from "./requests.ts";

export type StartPageServices = {
  readonly config: Config;
  readonly catalog: () => Catalog;
  /** Where clients reach the service. */
  readonly address: () => string;
  /** What is wrong, in a word; null when nothing is. */
  readonly fault: () => Promise<string | null>;
  /** The key that clients bear; it is no secret. */
  readonly anonKey: string;
  readonly links: readonly Door[];
  readonly graphqlQuery: (table: string) => string | null;
};

/** `/`: what runs here, and a first request to each interface for every table that strangers may read. */
export function startPageRoutes(services: StartPageServices): Routes {
  const render = makeRenderPage({ formTargets: [] });
  const headers = { "Cache-Control": "no-store" };
  return {
    "/": {
      GET: async () => {
        const content = contentOf(services, await services.fault());
        return render({ title: "Content service", content, isWide: true, script: COPY, headers });
      },
    },
  };
}

function contentOf(services: StartPageServices, fault: string | null): Html {
  const { config, anonKey } = services;
  const tables = services.catalog().schemas.get(config.schemas[0]!)?.tables;
  const links = services.links.filter(
    ({ root }) => root === undefined || hasSmartTag(tables?.get(root)?.comment ?? null, "root"),
  );
  const isOpen = config.nodeEnv !== "production";
  return html`
<p>${fault === null ? html`<span class="good">● healthy</span>` : html`<span class="bad">● ${fault}</span>`}
<span class="quiet"> · <a href="/health">/health</a> · ${services.address()}</span></p>

<nav aria-labelledby="doors">
<h2 id="doors">Try it</h2>
<ul class="cards">
${links.map(({ path, title, about }) => html`<li><a href="${path}">${title}<span>${about}</span></a></li>`)}
</ul>
</nav>

<section aria-labelledby="keys">
<h2 id="keys">Keys</h2>
<p>Requests to <code>/rest/v1</code> and channels bear a key. <code>npm run keys</code>, or
<code>npx content-service keys</code>, prints both: the anonymous one for clients, which row-level policies bound, and the one for
servers, which is a secret.</p>
${isOpen ? html`<h3>The anonymous key of this deployment</h3><pre><code>${anonKey}</code></pre>` : null}
</section>

<section aria-labelledby="tables">
<h2 id="tables">Tables</h2>
${tablesOf(services, isOpen ? anonKey : "$ANON_KEY")}
</section>`;
}

function tablesOf(services: StartPageServices, key: string): Html {
  const { config, graphqlQuery } = services;
  const catalog = services.catalog();
  const address = services.address();
  const readable = readableTables(catalog, config);
  if (readable.length === 0) {
    return html`<p class="quiet">None that a caller without credentials may read.</p>`;
  }
  return html`<p class="quiet">What a caller without credentials may read; signed in, you may see more.</p>
${readable.map(({ table, columns }) => {
  const samples = sampleRequests(table, { address, key, columns, graphqlQuery: graphqlQuery(table.name) });
  const about = spokenComment(table.comment);
  return html`<details><summary>${table.name}</summary><div>
${about === null ? null : html`<p>${about}</p>`}
${samples.map(({ by, text }) => html`<h3>${by}</h3><pre><code>${text}</code></pre>`)}
</div></details>`;
})}`;
}

type Readable = { readonly table: Table; readonly columns: readonly string[] };

/** As OpenAPI shows them, or not. */
function readableTables(catalog: Catalog, { schemas, anonRole, openapiMode }: Config): Readable[] {
  const schema = catalog.schemas.get(schemas[0]!);
  if (!schema || openapiMode === "disabled" || !catalog.mayRole(anonRole, "usage", schema)) return [];
  return [...schema.tables.values()]
    .filter(({ isPartition }) => !isPartition)
    .map((table) => ({
      table,
      columns: [...table.columns.keys()].filter((name) => catalog.mayRole(anonRole, "select", table, name)),
    }))
    .filter(({ columns }) => columns.length > 0);
}
