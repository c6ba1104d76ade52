import { readFile } from "node:fs/promises";
import { join } from "node:path";
import {
  type GraphQLField,
  type GraphQLNamedType,
  type GraphQLObjectType,
  type GraphQLSchema,
  getNamedType,
  isLeafType,
  isListType,
  isNonNullType,
  isObjectType,
  isRequiredArgument,
  parse,
  print,
} from "grafast/graphql";
import { type CompressedContent, compressContent, compressedResponse, methodNotAllowed, notFound } from "#http";
import { isVisibleTo, type RolePrivileges } from "#plugins";
import { memoize } from "#runtime";
import type { GraphqlHttpRequest, GraphqlHttpResponse } from "./request/http-messages.ts";

const EXPLORER_METHODS = "GET, HEAD, OPTIONS";

/** Built by `npm run build` in the folder `graphiql`. */
const FILES = join(import.meta.dirname, "graphiql");
const CONTENT_TYPES: ReadonlyMap<string, string> = new Map([
  ["graphiql.js", "text/javascript; charset=utf-8"],
  ["graphiql.css", "text/css; charset=utf-8"],
]);

const HELP = `# Ctrl-Enter runs the query, Ctrl-Space shows completions.
# To run it as a user, open Headers below and enter:
#   { "Authorization": "Bearer <token>" }

`;
const NO_TABLES_QUERY = `query Fields {
  __schema {
    queryType {
      fields {
        name
        description
      }
    }
  }
}`;

/** Allows the page's own files, requests to this server, and the styles that its editor inserts. */
const SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  // Some browsers do not count WebSockets of the same server as 'self'.
  "connect-src 'self' ws: wss:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join(";");

type ExplorerOptions = {
  readonly explorer: string;
  readonly graphql: string;
  /** A query over tables that the caller of the request may read; null if there is none. */
  readonly sampleQueryFor: (request: GraphqlHttpRequest) => Promise<string | null>;
};

/** Serves GraphiQL. The page and all its files come from this server only. */
export function makeExplorer({
  explorer,
  graphql,
  sampleQueryFor,
}: ExplorerOptions): (request: GraphqlHttpRequest) => Promise<GraphqlHttpResponse> {
  const staticPath = `${explorer}/static/`;
  const readExplorerFile = memoize(readFileOnce);

  return async (request) => {
    const { method, path, headers } = request;
    if (method === "OPTIONS") return { status: 204, headers: { Allow: EXPLORER_METHODS }, body: null };
    if (method !== "GET" && method !== "HEAD") throw methodNotAllowed(method, EXPLORER_METHODS);
    if (path === explorer) {
      const query = HELP + ((await sampleQueryFor(request)) ?? NO_TABLES_QUERY);
      return explorerPage(staticPath, { endpoint: graphql, query });
    }
    const name = path.startsWith(staticPath) ? path.slice(staticPath.length) : "";
    if (!CONTENT_TYPES.has(name)) throw notFound();
    return compressedResponse(await readExplorerFile(name), headers);
  };
}

async function readFileOnce(name: string): Promise<CompressedContent> {
  return compressContent(await readFile(join(FILES, name)), {
    "Content-Type": CONTENT_TYPES.get(name)!,
    "Cache-Control": "public, max-age=3600",
  });
}

type PageSettings = { readonly endpoint: string; readonly query: string };

function explorerPage(staticPath: string, settings: PageSettings): GraphqlHttpResponse {
  // `<` could end the script element.
  const data = JSON.stringify(settings).replaceAll("<", "\\u003c");
  return {
    status: 200,
    headers: {
      "Content-Type": "text/html; charset=utf-8",
      "Content-Security-Policy": SECURITY_POLICY,
      // The query depends on the caller.
      "Cache-Control": "no-store",
    },
    body: `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <title>GraphiQL</title>
    <link rel="icon" href="data:,">
    <link rel="stylesheet" href="${staticPath}graphiql.css">
  </head>
  <body>
    <main id="graphiql"><noscript>GraphiQL needs JavaScript.</noscript></main>
    <script type="application/json" id="settings">${data}</script>
    <script src="${staticPath}graphiql.js"></script>
  </body>
</html>
`,
  };
}

const MAX_FIELDS = 4;
const MAX_TABLES = 3;

type QueryField = GraphQLField<unknown, unknown>;

/** An example query for the rows of a table; null when the query type has no field of that name. */
export function sampleQuery(schema: GraphQLSchema, table: string): string | null {
  const name = table.replace(/(?<!_)_+([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
  const field = schema.getQueryType()?.getFields()[name];
  const rows = field && selectRows(field, () => true);
  return rows ? `{ ${rows} }` : null;
}

/** A query for the rows of the first tables that a role may read; null if there is none. */
export function sampleTablesQuery(schema: GraphQLSchema, role: RolePrivileges): string | null {
  // The schema of anonymous callers has fields that they may use after sign-in only.
  const mayUse = (field: QueryField) => isVisibleTo(field, role);
  const usable = Object.values(schema.getQueryType()?.getFields() ?? {})
    .filter((field) => mayUse(field) && !field.args.some(isRequiredArgument))
    .map((field) => ({ rowType: rowTypeOf(field), selection: selectRows(field, mayUse) }))
    .filter(({ selection }) => selection !== null);
  // The search results of a table are its rows once more.
  const rows = Map.groupBy(usable, ({ rowType }) => rowType)
    .values()
    .map(([first]) => first!.selection)
    .take(MAX_TABLES)
    .toArray();
  return rows.length === 0 ? null : print(parse(`query Tables { ${rows.join(" ")} }`));
}

function rowTypeOf({ type }: QueryField): GraphQLNamedType {
  const named = getNamedType(type);
  return (isObjectType(named) && nodeOf(named)) || named;
}

/** The first rows of a connection or a list; null if the field is neither or has no column to select. */
function selectRows(field: QueryField, mayUse: (field: QueryField) => boolean): string | null {
  const type = getNamedType(field.type);
  if (!isObjectType(type)) return null;
  const node = nodeOf(type);
  const columns = leavesOf(node ?? type, mayUse);
  if (columns === "") return null;
  if (node) return `${field.name}(first: 5) { totalCount edges { node { ${columns} } } }`;
  const hasLimit = field.args.some(({ name }) => name === "limit");
  return isList(field) && hasLimit ? `${field.name}(limit: 5) { ${columns} }` : null;
}

/** The node type of a connection. */
function nodeOf(type: GraphQLObjectType): GraphQLObjectType | null {
  const edge = type.getFields().edges;
  const edgeType = edge && getNamedType(edge.type);
  const node = isObjectType(edgeType) ? edgeType.getFields().node : undefined;
  const nodeType = node && getNamedType(node.type);
  return isObjectType(nodeType) ? nodeType : null;
}

function isList({ type }: QueryField): boolean {
  return isListType(isNonNullType(type) ? type.ofType : type);
}

function leavesOf(type: GraphQLObjectType, mayUse: (field: QueryField) => boolean): string {
  const leaves = Object.values(type.getFields()).filter(
    (field) => isLeafType(getNamedType(field.type)) && !field.args.some(isRequiredArgument) && mayUse(field),
  );
  const names = leaves.map(({ name }) => name);
  // Computed columns precede the key.
  const ordered = [...names.filter((name) => name === "id"), ...names.filter((name) => name !== "id")];
  return ordered.slice(0, MAX_FIELDS).join(" ");
}
