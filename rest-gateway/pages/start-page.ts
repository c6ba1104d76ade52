import type { Catalog } from "../../engine/catalog/catalog.ts";
import { hasSmartTag, publicComment } from "../../engine/catalog/comments.ts";
import type { CatalogTable } from "../../engine/catalog/tables.ts";
import type { Config } from "../../engine/config/config.ts";
import type { GatewayRoutes } from "../http/router.ts";
import { type Html, html, makeRenderPage } from "./page.ts";

const MOST_COLUMNS = 4;
const PLAIN =
  /^[a-z_]\w*$/i; /** Gives each sample a button that copies it. Runs in the browser, where that lets pages copy: not over plain HTTP from elsewhere. */
const COPY_SCRIPT = `
for (const sample of navigator.clipboard ? document.querySelectorAll("pre") : []) {
  const frame = document.createElement("div");
  frame.className = "copied";
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(sample.textContent);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 1500);
  });
  sample.replaceWith(frame);
  frame.append(sample, button);
}
`;

type StartPageDependencies = {
  readonly config: Config;
  readonly catalog: () => Catalog;
  /** Where clients reach the service. */
  readonly address: () => string;
  /** What is wrong, in a word; null when nothing is. */
  readonly fault: () => Promise<string | null>;
  /** The key that clients bear; it is no secret. */
  readonly anonKey: string;
  readonly links: readonly StartPageLink[];
  readonly graphqlQuery: (table: string) => string | null;
};

/** `/`: what runs here, and a first request to each interface for every table that strangers may read. */
export function startPageRoutes(dependencies: StartPageDependencies): GatewayRoutes {
  const render = makeRenderPage({ formTargets: [] });
  const headers = { "Cache-Control": "no-store" };
  return {
    "/": {
      GET: async () => {
        const content = pageContent(dependencies, await dependencies.fault());
        return render({ title: "Content service", content, isWide: true, script: COPY_SCRIPT, headers });
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
${tablesSection(dependencies, isOpen ? anonKey : "$ANON_KEY")}
</section>`;
}

function tablesSection(dependencies: StartPageDependencies, key: string): Html {
  const { config, graphqlQuery } = dependencies;
  const catalog = dependencies.catalog();
  const address = dependencies.address();
  const readable = readableTables(catalog, config);
  if (readable.length === 0) {
    return html`<p class="quiet">None that a caller without credentials may read.</p>`;
  }
  return html`<p class="quiet">What a caller without credentials may read; signed in, you may see more.</p>
${readable.map(({ table, columns }) => {
  const samples = sampleRequests(table, { address, key, columns, graphqlQuery: graphqlQuery(table.name) });
  const about = publicComment(table.comment);
  return html`<details><summary>${table.name}</summary><div>
${about === null ? null : html`<p>${about}</p>`}
${samples.map(({ by, text }) => html`<h3>${by}</h3><pre><code>${text}</code></pre>`)}
</div></details>`;
})}`;
}

type SampledTable = { readonly table: CatalogTable; readonly columns: readonly string[] };

/** As OpenAPI shows them, or not. */
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
  /** The anonymous key, or where to put it. */
  readonly key: string;
  /** Columns that may be read by the one who is shown this. */
  readonly columns: readonly string[];
  /** Null when GraphQL does not show the table. */
  readonly graphqlQuery: string | null;
};

/** One question, put to each interface; to be copied as it stands. */
function sampleRequests(table: CatalogTable, { address, key, columns, graphqlQuery }: SampleContext): SampleRequest[] {
  const chosen = columns.slice(0, MOST_COLUMNS).map(quoteColumn);
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

/** A name that `select` and supabase-js would take apart stands in quotes. */
function quoteColumn(name: string): string {
  return PLAIN.test(name) ? name : `"${name.replace(/["\\]/g, "\\$&")}"`;
}

type StartPageLink = {
  readonly path: string;
  readonly title: string;
  readonly about: string;
  /** The table whose comment puts it there. */
  readonly root?: string;
};

/** What can be opened in a browser here. */
export function startPageLinks(
  { graphqlExplorer }: Config,
  { canSignIn }: { readonly canSignIn: boolean },
): StartPageLink[] {
  return [
    ...(graphqlExplorer ? [{ path: "/graphiql", title: "GraphiQL", about: "ask, change and subscribe by hand" }] : []),
    { path: "/docs", title: "API reference", about: "the REST interfaces, to read and to try" },
    { path: "/docs/errors", title: "Errors", about: "every code, and what to do about it" },
    ...(canSignIn ? [{ path: "/auth/sign-in", title: "Sign in", about: "with a password or a provider" }] : []),
    { path: "/users", title: "Users", about: "the conventional interface, as it answers", root: "users" },
  ];
}
