import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Catalog, type CatalogTable, hasSmartTag, publicComment } from "#catalog";
import type { Config } from "#config";
import type { GatewayRoutes } from "#http";
import { PACKAGE_NAME } from "#runtime";
import { type Html, html, MARK, makeRenderPage } from "./page.ts";
import { PRODUCT_NAME } from "./product.ts";

const MAX_COLUMNS = 4;
const PLAIN_NAME = /^[a-z_]\w*$/i;

const COPY_SCRIPT = readFileSync(join(import.meta.dirname, "copy-buttons.js"), "utf8");

/** The heading of this page is the product's name. */
const HEADER = html`<header class="product">${MARK}</header>`;

type StartPageDependencies = {
  readonly config: Config;
  readonly catalog: () => Catalog;
  /** Returns the base URL of the service. */
  readonly address: () => string;
  /** Resolves with the state of the service if it is not healthy; else null. */
  readonly fault: () => Promise<string | null>;
  /** The public API key. Null if this deployment signs no tokens. */
  readonly anonKey: string | null;
  readonly links: readonly StartPageLink[];
  /** Returns the query; null if GraphQL does not have the table, or is not loaded yet. */
  readonly graphqlQuery: (table: string) => string | null;
};

/** Serves `/`: links, the public key, and sample requests for each table that anonymous callers may read. */
export function startPageRoutes(dependencies: StartPageDependencies): GatewayRoutes {
  const render = makeRenderPage({ formTargets: [] });
  const headers = { "Cache-Control": "no-store" };
  return {
    "/": {
      GET: async () => {
        const content = pageContent(dependencies, await dependencies.fault());
        return render({ title: PRODUCT_NAME, before: HEADER, content, isWide: true, script: COPY_SCRIPT, headers });
      },
    },
  };
}

function pageContent(dependencies: StartPageDependencies, fault: string | null): Html {
  const { config, anonKey } = dependencies;
  const tables = dependencies.catalog().schemas.get(config.schemas[0]!)?.tables;
  const links = dependencies.links.filter(
    ({ root }) => root === undefined || hasSmartTag(tables?.get(root)?.comment ?? null, "root"),
  );
  const isOpen = config.nodeEnv !== "production";
  return html`
<p>${fault === null ? html`<span class="good">● healthy</span>` : html`<span class="bad">● ${fault}</span>`}
<span class="quiet"> · <a href="/health">/health</a> · ${dependencies.address()}</span></p>

<nav aria-labelledby="links">
<h2 id="links">Try it</h2>
<ul class="cards">
${links.map(({ path, title, about }) => html`<li><a href="${path}">${title}<span>${about}</span></a></li>`)}
</ul>
</nav>

<section aria-labelledby="keys">
<h2 id="keys">Keys</h2>
<p>Requests to <code>/rest/v1</code> and Realtime need an API key. <code>npm run keys</code> (or
<code>npx ${PACKAGE_NAME} keys</code>) prints both keys: <code>anon</code> is public and restricted by row-level security;
<code>service_role</code> bypasses it: keep it secret.</p>
${isOpen && anonKey !== null ? html`<h3>The <code>anon</code> key of this deployment</h3><pre tabindex="0"><code>${anonKey}</code></pre>` : null}
</section>

<section aria-labelledby="tables">
<h2 id="tables">Tables</h2>
${tablesSection(dependencies, (isOpen ? anonKey : null) ?? "$ANON_KEY")}
</section>`;
}

function tablesSection(dependencies: StartPageDependencies, key: string): Html {
  const { config, graphqlQuery } = dependencies;
  const catalog = dependencies.catalog();
  const address = dependencies.address();
  const readable = readableTables(catalog, config);
  if (readable.length === 0) {
    return html`<p class="quiet">Anonymous callers may not read any table.</p>`;
  }
  const queries = readable.map(({ table }) => graphqlQuery(table.name));
  return html`<p class="quiet">Tables that anonymous callers may read. Signed-in users may see more.${
    queries.every((query) => query === null) && config.graphqlExplorer
      ? html` <a href="/graphiql">GraphiQL</a> opens with a GraphQL query of them.`
      : null
  }</p>
${readable.map(({ table, columns }, index) => {
  const samples = sampleRequests(table, { address, key, columns, graphqlQuery: queries[index]! });
  const about = publicComment(table.comment);
  return html`<details><summary>${table.name}</summary><div>
${about === null ? null : html`<p>${about}</p>`}
${samples.map(({ by, text }) => html`<h3>${by}</h3><pre tabindex="0"><code>${text}</code></pre>`)}
</div></details>`;
})}`;
}

type SampledTable = { readonly table: CatalogTable; readonly columns: readonly string[] };

/** Returns the tables of the default schema that OpenAPI documents show to anonymous callers. */
function readableTables(catalog: Catalog, { schemas, anonRole, openapiMode }: Config): SampledTable[] {
  const schema = catalog.schemas.get(schemas[0]!);
  if (!schema || openapiMode === "disabled" || !catalog.hasPrivilege(anonRole, "usage", schema)) return [];
  return [...schema.tables.values()]
    .filter(({ isPartition }) => !isPartition)
    .map((table) => ({
      table,
      columns: [...table.columns.keys()].filter((name) => catalog.hasPrivilege(anonRole, "select", table, name)),
    }))
    .filter(({ columns }) => columns.length > 0);
}

type SampleRequest = { readonly by: string; readonly text: string };

type SampleContext = {
  readonly address: string;
  /** The public key or a placeholder. */
  readonly key: string;
  /** The columns that anonymous callers may read. */
  readonly columns: readonly string[];
  /** Null if GraphQL does not have the table. */
  readonly graphqlQuery: string | null;
};

/** Returns the same read as a request of each interface. */
function sampleRequests(table: CatalogTable, { address, key, columns, graphqlQuery }: SampleContext): SampleRequest[] {
  const chosen = columns.slice(0, MAX_COLUMNS).map(quoteColumn);
  const select = chosen.map(encodeURIComponent).join(",");
  const path = encodeURIComponent(table.name);
  const samples: SampleRequest[] = [
    {
      by: "curl",
      text: `curl -H "apikey: ${key}" \\\n  "${address}/rest/v1/${path}?select=${select}&limit=5"`,
    },
    {
      by: "supabase-js",
      text: `import { createClient } from "@supabase/supabase-js";

const supabase = createClient("${address}", "${key}");
const { data, error } = await supabase.from(${JSON.stringify(table.name)}).select(${JSON.stringify(chosen.join(", "))}).limit(5);`,
    },
  ];
  if (graphqlQuery !== null) samples.push({ by: "GraphQL", text: graphqlQuery });
  return samples;
}

/** Quotes a name with characters that are syntax in `select`. */
function quoteColumn(name: string): string {
  return PLAIN_NAME.test(name) ? name : `"${name.replace(/["\\]/g, "\\$&")}"`;
}

type StartPageLink = {
  readonly path: string;
  readonly title: string;
  readonly about: string;
  /** The table that must have the `@root` comment tag. */
  readonly root?: string;
};

/** Returns the pages of this deployment. */
export function startPageLinks(
  { graphqlExplorer, studio }: Config,
  { canSignIn }: { readonly canSignIn: boolean },
): StartPageLink[] {
  return [
    ...(studio === "off" ? [] : [{ path: "/studio", title: "Studio", about: "see and edit tables, as a role may" }]),
    ...(graphqlExplorer
      ? [{ path: "/graphiql", title: "GraphiQL", about: "run queries, mutations and subscriptions" }]
      : []),
    { path: "/docs", title: "API reference", about: "reference of the REST APIs, with requests to try" },
    { path: "/docs/guide", title: "Guide", about: "the documentation, with search" },
    { path: "/docs/errors", title: "Errors", about: "all error codes and how to fix them" },
    ...(canSignIn ? [{ path: "/auth/sign-in", title: "Sign in", about: "with a password or a provider" }] : []),
    { path: "/users", title: "Users", about: "a response of the plain REST API", root: "users" },
  ];
}
