import { createHash } from "node:crypto";
import { type RuruClientConfig, ruruHTML } from "postgraphile/grafserv/ruru/server";
import { getStaticFile } from "postgraphile/grafserv/ruru/static";
import { methodNotAllowed, notFound } from "../../engine/wrong-address.ts";
import type { HttpRequest, HttpResponse } from "./http.ts";

const WELCOME = `# Ctrl-Enter runs what you write here.
# Ctrl-Space shows what may stand at the cursor.
# To ask as somebody, write under Headers, below:
#   { "Authorization": "Bearer <token>" }

query Welcome {
  __schema {
    queryType { fields { name description } }
  }
}
`;

/** Who has signed in on a page of this server is who asks here: their cookie is refused without the token of the session. */
const SHOW_SESSION_TOKEN = `
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

const METHODS = "GET, HEAD, OPTIONS";

type Addresses = { readonly explorer: string; readonly graphql: string };

/** GraphiQL, in the edition of PostGraphile (ruru). The page and all its files come from this server, and from nowhere else. */
export function makeExplorer({ explorer, graphql }: Addresses): (request: HttpRequest) => Promise<HttpResponse> {
  const staticPath = `${explorer}/static/`;
  const html = ruruHTML({
    staticPath,
    endpoint: graphql,
    subscriptionEndpoint: graphql,
    htmlParts: {
      titleTag: "<title>GraphiQL</title>",
      // Without one, browsers ask for /favicon.ico.
      headerScripts: (scripts) => `${scripts}<script>${SHOW_SESSION_TOKEN}</script>`,
      metaTags: (tags) => `${tags}<link rel="icon" href="data:," />`,
    },
    clientConfig: { defaultQuery: WELCOME, debugTools: [] } as unknown as RuruClientConfig,
  });
  const page: HttpResponse = {
    status: 200,
    headers: {
      "Content-Type": "text/html; charset=utf-8",
      "Content-Security-Policy": policyFor(html),
      "Cache-Control": "no-cache",
    },
    body: html,
  };

  return async ({ method, path, headers }) => {
    if (method === "OPTIONS") return { status: 204, headers: { Allow: METHODS }, body: null };
    if (method !== "GET" && method !== "HEAD") throw methodNotAllowed(method, METHODS);
    if (path === explorer) return page;
    const acceptEncoding = headers["accept-encoding"];
    const file = path.startsWith(staticPath)
      ? await getStaticFile({ staticPath, urlPath: path, acceptEncoding, disallowDevAssets: true })
      : null;
    if (!file) throw notFound();
    const { etag = "", "content-type": type = "", "content-encoding": encoding } = file.headers;
    const shared = { ETag: etag, "Cache-Control": "public, max-age=3600", Vary: "Accept-Encoding, Origin" };
    if (headers["if-none-match"] === etag) return { status: 304, headers: shared, body: null };
    const own = { "Content-Type": type, ...(encoding && { "Content-Encoding": encoding }) };
    return { status: 200, headers: { ...shared, ...own }, body: file.content };
  };
}

/** What the page may load and run: its own files, the scripts that stand in it, and the styles that its editor writes. */
function policyFor(html: string): string {
  const inline = [...html.matchAll(/<script(?: type="module")?>([\s\S]*?)<\/script>/g)].map(([, script]) =>
    hashOf(script!),
  );
  const directives = {
    "default-src": ["'none'"],
    "script-src": ["'self'", ...inline],
    "worker-src": ["'self'"],
    "style-src": ["'self'", "'unsafe-inline'"],
    "img-src": ["'self'", "data:"],
    "font-src": ["'self'", "data:"],
    // Some browsers do not count a WebSocket of the same server as 'self'.
    "connect-src": ["'self'", "ws:", "wss:"],
    "base-uri": ["'none'"],
    "form-action": ["'none'"],
    "frame-ancestors": ["'none'"],
  };
  return Object.entries(directives)
    .map(([name, sources]) => `${name} ${sources.join(" ")}`)
    .join(";");
}

function hashOf(script: string): string {
  return `'sha256-${createHash("sha256").update(script).digest("base64")}'`;
}
