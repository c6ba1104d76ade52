import { readFileSync } from "node:fs";
import { join } from "node:path";
import { contentResponse, type GatewayHandler, type GatewayRoutes, tagContent } from "#http";
import { type Html, html, makeRenderPage } from "#rest-gateway/pages";
import type { ReadVersions } from "#rest-gateway/resource/parse";

const REFERENCE_PATH = "/docs";
const SCRIPTS = ["reference-page.js", "schema-text.js"];

/** Serves `/docs`: the OpenAPI document as a page, whose script reads it as the caller. All files come from this server. */
export function apiReferenceRoutes(documentPath: string, versions: ReadVersions): GatewayRoutes {
  const render = makeRenderPage({
    formTargets: [],
    style: readFileSync(join(import.meta.dirname, "api-reference.css"), "utf8"),
    loadsFiles: true,
  });
  const page: GatewayHandler = async () => {
    const served = (await versions()).filter(({ status }) => status !== "retired").map(({ number }) => number);
    return render({
      title: "API reference",
      content: pageContent(documentPath, served),
      after: html`<script type="module" src="${REFERENCE_PATH}/reference-page.js"></script>`,
      isWide: true,
      headers: { "Cache-Control": "no-cache" },
    });
  };
  const scripts = SCRIPTS.map((name) => [`${REFERENCE_PATH}/${name}`, { GET: serveScript(name) }] as const);
  return { [REFERENCE_PATH]: { GET: page }, ...Object.fromEntries(scripts) };
}

function serveScript(name: string): GatewayHandler {
  const body = readFileSync(join(import.meta.dirname, name), "utf8");
  const headers = { "Content-Type": "text/javascript; charset=utf-8", "Cache-Control": "no-cache" };
  const script = tagContent(body, headers);
  return (request) => contentResponse(script, request.headers["if-none-match"]);
}

function pageContent(documentPath: string, versions: readonly number[]): Html {
  return html`<p>The plain REST interface and sign-in, as your role sees them. <code>/rest/v1</code> has
<a href="/docs/guide/table-interface">a page of its own</a>. See also <a href="/docs/errors">all errors</a> and
<a href="${documentPath}">the OpenAPI document</a>.</p>
<noscript><p class="alert">This page needs JavaScript. The OpenAPI document has the same content.</p></noscript>
<form id="controls" autocomplete="off">
${versions.length > 1 ? versionField(versions) : null}
<div><label for="token">Access token</label><input id="token" name="token" type="password" placeholder="of a user, or empty"></div>
<button>Apply token</button>
<div class="filter"><label for="filter">Filter</label><input id="filter" name="filter" type="search" placeholder="users, POST, sign in"></div>
</form>
<p id="status" class="quiet" role="status"></p>
<div id="operations" data-document="${documentPath}"></div>`;
}

function versionField(versions: readonly number[]): Html {
  const options = versions.map((version) => html`<option value="${version}">Version ${version}</option>`);
  return html`<div><label for="version">Version</label><select id="version" name="version">${options}</select></div>`;
}
