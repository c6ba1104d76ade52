import { readFileSync } from "node:fs";
import { STATUS_CODES } from "node:http";
import { join } from "node:path";
import {
  type ErrorPageRequest,
  type ErrorVerbosity,
  errorCodeOf,
  type GatewayRoutes,
  type HttpError,
  isPathUnder,
  isReadMethod,
  mergeVary,
  type NegotiateErrorPage,
  prefersHtml,
  queryWithoutApiKey,
  TABLE_PREFIX,
  toTableBody,
} from "#http";
import { fieldErrorsOf } from "#runtime";
import { type Html, html, makeRenderPage } from "./page.ts";

type ErrorPageOptions = {
  readonly errorVerbosity: ErrorVerbosity;
  /** The path of the sign-in page; null if users cannot sign in. */
  readonly signInPath: string | null;
};

/** The parts of an error that a page shows: no more than the JSON body. */
type ShownError = { readonly code: string; readonly message: string; readonly remarks: readonly string[] };

const REFERENCE_PATH = "/docs/errors";

/** Makes the page, which has the status and the headers of the JSON response. */
export function makeErrorPage(options: ErrorPageOptions): NegotiateErrorPage {
  const render = makeRenderPage({ formTargets: [] });
  const documentedCodes = new Set(readErrors().flatMap(({ entries }) => entries.map(({ code }) => code)));
  return (error, request, response) => {
    if (!isNegotiable(request)) return response;
    const headers = { ...response.headers, Vary: mergeVary(response.headers.Vary ?? "", "Accept") };
    if (!isNavigation(request) || !prefersHtml(request.headers)) return { ...response, headers };
    const { status } = response;
    const shown = toShownError(error, request, options);
    const page = render({
      title: `${status} ${STATUS_CODES[status] ?? ""}`.trim(),
      content: errorContent(shown, request.id, documentedCodes.has(shown.code), signInLink(error, request, options)),
      status,
    });
    return { ...response, headers: { ...headers, ...page.headers }, body: page.body };
  };
}

/** Returns true for reads, and for forms that a browser submits: scripts and programs send other bodies. */
function isNegotiable({ method, headers }: ErrorPageRequest): boolean {
  if (isReadMethod(method)) return true;
  return (
    method === "POST" &&
    /^(application\/x-www-form-urlencoded|multipart\/form-data)/i.test(headers["content-type"] ?? "")
  );
}

/**
 * Returns true for the navigation of a browser, which sends a header for it, because the page chooses the Accept header of its scripts.
 * A client of the table interface that accepts HTML only, and is no browser, gets JSON as from PostgREST.
 */
function isNavigation({ headers, path }: ErrorPageRequest): boolean {
  const mode = headers["sec-fetch-mode"];
  return mode === undefined ? !isPathUnder(TABLE_PREFIX, path) : mode === "navigate";
}

function toShownError(error: HttpError, { path }: ErrorPageRequest, { errorVerbosity }: ErrorPageOptions): ShownError {
  if (!isPathUnder(TABLE_PREFIX, path)) {
    const remarks = fieldErrorsOf(error).map(({ field, message }) => `${field}: ${message}`);
    return { code: errorCodeOf(error), message: error.message, remarks };
  }
  const { code, message, details, hint } = toTableBody(error);
  const remarks = errorVerbosity === "minimal" ? [] : [details, hint].filter((remark) => typeof remark === "string");
  return { code, message, remarks };
}

/** Returns the sign-in link. The table interface accepts no session, so signing in does not help there. */
function signInLink(error: HttpError, { method, path, rawQuery }: ErrorPageRequest, { signInPath }: ErrorPageOptions) {
  if (error.status !== 401 || signInPath === null || isPathUnder(TABLE_PREFIX, path)) return null;
  if (method === "POST") return signInPath;
  const query = queryWithoutApiKey(rawQuery);
  const target = query === "" ? path : `${path}?${query}`;
  return `${signInPath}?${new URLSearchParams({ redirect_to: target })}`;
}

function errorContent(
  { code, message, remarks }: ShownError,
  requestId: string,
  isDocumented: boolean,
  signIn: string | null,
): Html {
  return html`<p class="alert">${message}</p>
${remarks.filter((remark) => !message.includes(remark)).map((remark) => html`<p>${remark}</p>`)}
<dl>
<dt>Code</dt><dd><a href="${REFERENCE_PATH}${isDocumented ? `#${code}` : ""}"><code>${code}</code></a></dd>
<dt>Request</dt><dd><code>${requestId}</code></dd>
</dl>
<nav aria-label="Go on">
${signIn === null ? null : html`<a href="${signIn}">Sign in</a>`}
<a href="/">Start page</a>
<a href="${REFERENCE_PATH}">All errors</a>
</nav>`;
}

/** The source of the errors. The documentation is the only list of them. */
const SOURCE = join(import.meta.dirname, "../../docs/errors.md");
const GROUP_SECTION = /^## (?<title>.+)\n\n(?<about>[^|]+)\n\n(?<table>(?:\|.*\n)+)/gm;
/**
 * A row of the table, whose codes have one meaning: `| `40001`, `40P01` (500)
 * …
 * … |`.
 */
const ERROR_ROW =
  /^\| (?<codes>`\w+`(?:, `\w+`)*)(?: \((?<status>[\d, ]+)\))? \| (?<meaning>[^|]*) \| (?<remedy>[^|]*) \|$/gm;

/** Serves `/docs/errors`, the target of `documentation` in error bodies. */
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
<thead><tr><th scope="col">Code</th><th scope="col">Status</th><th scope="col">Meaning</th><th scope="col">What to do</th></tr></thead>
<tbody>
${entries.map(
  ({ code, status, meaning, remedy }) => html`<tr id="${code}">
<th scope="row"><a href="#${code}"><code>${code}</code></a></th><td>${status}</td><td>${inCode(meaning)}</td><td>${inCode(remedy)}</td>
</tr>`,
)}
</tbody></table></div>`;
}

/** Formats text between backticks as code. */
function inCode(text: string): Html[] {
  return text.split("`").map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : html`${part}`));
}

type ErrorGroup = { readonly title: string; readonly about: string; readonly entries: readonly ErrorEntry[] };

type ErrorEntry = {
  readonly code: string;
  /** HTTP statuses, such as `400, 401`; empty for codes of GraphQL only. */
  readonly status: string;
  readonly meaning: string;
  readonly remedy: string;
};

export function readErrors(): ErrorGroup[] {
  return [...readFileSync(SOURCE, "utf8").matchAll(GROUP_SECTION)].map(({ groups }) => {
    const { title, about, table } = groups as { title: string; about: string; table: string };
    return { title, about, entries: [...table.matchAll(ERROR_ROW)].flatMap(toErrorEntries) };
  });
}

function toErrorEntries({ groups }: RegExpExecArray): ErrorEntry[] {
  const {
    codes,
    status = "",
    meaning,
    remedy,
  } = groups as Record<"codes" | "meaning" | "remedy", string> & {
    status?: string;
  };
  return [...codes.matchAll(/\w+/g)].map(([code]) => ({ code, status, meaning, remedy }));
}
