import { createHash } from "node:crypto";
import {
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLSchema,
  getNamedType,
  isLeafType,
  isListType,
  isNonNullType,
  isObjectType,
} from "grafast/graphql";
import { type RuruClientConfig, ruruHTML } from "postgraphile/grafserv/ruru/server";
import { getStaticFile } from "postgraphile/grafserv/ruru/static";
import { methodNotAllowed, notFound } from "../../http/address-errors.ts";
import type { GraphqlHttpRequest, GraphqlHttpResponse } from "./http-handler.ts";

const MAX_FIELDS = 4;

const WELCOME_QUERY = `# Ctrl-Enter runs the query.
# Ctrl-Space shows completions.
# To run it as a user, open Headers below and enter:
#   { "Authorization": "Bearer <token>" }

query Welcome {
  __schema {
    queryType { fields { name description } }
  }
}
`;

/** Users signed in on this server run operations by their session cookie, which needs the session's CSRF token. */
const CSRF_FETCH_SCRIPT = `
const ask = globalThis.fetch;
let token = null;
globalThis.fetch = async (url, options = {}) => {
  const send = () => {
    const headers = new Headers(options.headers);
    if (token) headers.set("X-CSRF-Token", token);
    return ask(url, { ...options, headers });
  };
  const answer = await send();
  if (answer.status !== 403 || options.method !== "POST") return answer;
  const told = await ask("/csrf-token");
  if (!told.ok) return answer;
  token = (await told.json()).csrfToken;
  return send();
};
`;

const EXPLORER_METHODS = "GET, HEAD, OPTIONS";

type ExplorerPaths = { readonly explorer: string; readonly graphql: string };

/** Serves PostGraphile's GraphiQL (ruru). The page and all its files come from this server only. */
export function makeExplorer({
  explorer,
  graphql,
}: ExplorerPaths): (request: GraphqlHttpRequest) => Promise<GraphqlHttpResponse> {
  const staticPath = `${explorer}/static/`;
  const html = ruruHTML({
    staticPath,
    endpoint: graphql,
    subscriptionEndpoint: graphql,
    htmlParts: {
      titleTag: "<title>GraphiQL</title>",
      // Without an icon, browsers request /favicon.ico.
      headerScripts: (scripts) => `${scripts}<script>${CSRF_FETCH_SCRIPT}</script>`,
      metaTags: (tags) => `${tags}<link rel="icon" href="data:," />`,
    },
    clientConfig: { defaultQuery: WELCOME_QUERY, debugTools: [] } as unknown as RuruClientConfig,
  });
  const page: GraphqlHttpResponse = {
    status: 200,
    headers: {
      "Content-Type": "text/html; charset=utf-8",
      "Content-Security-Policy": contentSecurityPolicyFor(html),
      "Cache-Control": "no-cache",
    },
    body: html,
  };

  return async ({ method, path, headers }) => {
    if (method === "OPTIONS") return { status: 204, headers: { Allow: EXPLORER_METHODS }, body: null };
    if (method !== "GET" && method !== "HEAD") throw methodNotAllowed(method, EXPLORER_METHODS);
    if (path === explorer) return page;
    const acceptEncoding = headers["accept-encoding"];
    const file = path.startsWith(staticPath)
      ? await getStaticFile({ staticPath, urlPath: path, acceptEncoding, disallowDevAssets: true })
      : null;
    if (!file) throw notFound();
    const { etag = "", "content-type": type = "", "content-encoding": encoding } = file.headers;
    const cacheHeaders = { ETag: etag, "Cache-Control": "public, max-age=3600", Vary: "Accept-Encoding, Origin" };
    if (headers["if-none-match"] === etag) return { status: 304, headers: cacheHeaders, body: null };
    const contentHeaders = { "Content-Type": type, ...(encoding && { "Content-Encoding": encoding }) };
    return { status: 200, headers: { ...cacheHeaders, ...contentHeaders }, body: file.content };
  };
}

/** Allows the page's own files, its inline scripts, and the styles that its editor inserts. */
function contentSecurityPolicyFor(html: string): string {
  const inline = [...html.matchAll(/<script(?: type="module")?>([\s\S]*?)<\/script>/g)].map(([, script]) =>
    scriptHashOf(script!),
  );
  const directives = {
    "default-src": ["'none'"],
    "script-src": ["'self'", ...inline],
    "worker-src": ["'self'"],
    "style-src": ["'self'", "'unsafe-inline'"],
    "img-src": ["'self'", "data:"],
    "font-src": ["'self'", "data:"],
    // In some browsers 'self' does not include WebSockets of the same server.
    "connect-src": ["'self'", "ws:", "wss:"],
    "base-uri": ["'none'"],
    "form-action": ["'none'"],
    "frame-ancestors": ["'none'"],
  };
  return Object.entries(directives)
    .map(([name, sources]) => `${name} ${sources.join(" ")}`)
    .join(";");
}

function scriptHashOf(script: string): string {
  return `'sha256-${createHash("sha256").update(script).digest("base64")}'`;
}

/** An example query for the rows of a table; null when the query type has no field of that name. */
export function sampleQuery(schema: GraphQLSchema, table: string): string | null {
  const name = table.replace(/_+([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
  const field = schema.getQueryType()?.getFields()[name];
  if (!field) return null;
  const type = getNamedType(field.type);
  if (!isObjectType(type)) return null;
  const node = nodeOf(type);
  if (node) return `{ ${name}(first: 5) { totalCount edges { node { ${leavesOf(node)} } } } }`;
  return isList(field.type) ? `{ ${name}(limit: 5) { ${leavesOf(type)} } }` : null;
}

/** The node type of a connection. */
function nodeOf(type: GraphQLObjectType): GraphQLObjectType | null {
  const edge = type.getFields().edges;
  const edgeType = edge && getNamedType(edge.type);
  const node = isObjectType(edgeType) ? edgeType.getFields().node : undefined;
  const nodeType = node && getNamedType(node.type);
  return isObjectType(nodeType) ? nodeType : null;
}

function isList(type: GraphQLOutputType): boolean {
  return isListType(isNonNullType(type) ? type.ofType : type);
}

function leavesOf(type: GraphQLObjectType): string {
  const leaves = Object.values(type.getFields()).filter((field) => isLeafType(getNamedType(field.type)));
  return leaves
    .slice(0, MAX_FIELDS)
    .map(({ name }) => name)
    .join(" ");
}
