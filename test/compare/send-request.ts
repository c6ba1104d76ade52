import { Agent, request } from "node:http";

export type ComparedRequest = {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Base64, because a body may be no text. */
  readonly body: string | null;
};

export type ComparedResponse = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
};

/** Headers that depend on the day or on the connection, or that are measurements. */
const NOT_COMPARED = new Set([
  "date",
  "connection",
  "keep-alive",
  "transfer-encoding",
  "content-length",
  "x-request-id",
  "server-timing",
  "server",
  "ratelimit",
  "ratelimit-policy",
  "ratelimit-reset",
  "x-ratelimit-reset",
]);

const agent = new Agent({ keepAlive: true });

/** The response as it is; status 0 if the connection ended without one. */
export function send(baseUrl: string, { method, path, headers, body }: ComparedRequest): Promise<ComparedResponse> {
  const { hostname, port } = new URL(baseUrl);
  const bytes = body === null ? null : Buffer.from(body, "base64");
  // Node leaves the length out for DELETE, and the next request would begin with this one's body.
  const length = bytes === null ? {} : { "Content-Length": bytes.byteLength };
  return new Promise((resolve) => {
    const fail = ({ message }: Error) => resolve({ status: 0, headers: {}, body: message });
    const sent = request(
      { agent, hostname, port, method, path: escapePath(path), headers: { ...length, ...headers } },
      (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk) => chunks.push(chunk));
        response.on("error", fail);
        response.on("end", () =>
          resolve({
            status: response.statusCode!,
            headers: comparedHeaders(response.headers),
            body: textOf(Buffer.concat(chunks)),
          }),
        );
      },
    );
    sent.on("error", fail);
    sent.end(bytes ?? undefined);
  });
}

/** Returns the response without the parts that differ from run to run. */
export function withoutChance(baseUrl: string, path: string, response: ComparedResponse): ComparedResponse {
  const headers = Object.entries(response.headers)
    // Within a second of a change there is none.
    .filter(([name, value]) => name !== "last-modified" || !isRecent(value))
    .map(([name, value]) => [name, replaceChance(value, baseUrl)]);
  const text = replaceChance(response.body, baseUrl);
  const body = response.status === 200 ? withoutMeasures(path, text) : text;
  return { ...response, headers: Object.fromEntries(headers), body };
}

function escapePath(path: string): string {
  return path.replace(/[^!-~]/gu, encodeURIComponent);
}

function textOf(bytes: Buffer): string {
  const text = bytes.toString("utf8");
  return Buffer.from(text, "utf8").equals(bytes) ? text : `base64:${bytes.toString("base64")}`;
}

function comparedHeaders(headers: NodeJS.Dict<string | string[]>): Record<string, string> {
  const compared = Object.entries(headers).filter(([name]) => !NOT_COMPARED.has(name));
  return Object.fromEntries(compared.map(([name, value]) => [name, name === "etag" ? "<etag>" : String(value)]));
}

const TIME = /\b(\d{4}-\d\d-\d\d)[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d(:?\d\d)?)?/g;
const WEEKS_MS = 60 * 24 * 60 * 60 * 1_000;
/** False for other days: the ones that fixtures contain are compared. */
const isRecent = (day: string) => Math.abs(Date.parse(day) - Date.now()) < WEEKS_MS;

/** Replaces the measures of the service and its present activity, and the name of its database. */
function withoutMeasures(path: string, body: string): string {
  if (/^\/(admin\/v1\/(running|requests)|metrics)\b/.test(path)) return "<measures>";
  if (path.startsWith("/admin/v1/catalog"))
    return body.replace(/("(scans|bytes|estimated_rows)":)(\d+|null)/g, "$1<number>");
  if (path === "/admin/v1/session") return body.replace(/("project":)"[0-9a-f]+"/, '$1"<digest>"');
  return body;
}

/** Replaces the parts that differ from run to run: times, tokens, ids drawn at random, the address of the server. */
export function replaceChance(text: string, baseUrl: string): string {
  return (
    text
      .replaceAll(baseUrl, "<server>")
      .replaceAll(baseUrl.replace(/^https?:/, ""), "<server>")
      .replaceAll(new URL(baseUrl).host, "<host>")
      .replace(/eyJ[\w-]+\.[\w-]+\.[\w-]*/g, "<token>")
      .replace(/\b[0-9a-f]{8}-[0-9a-f]{4}-[47][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\b/gi, "<uuid>")
      .replace(TIME, (time, day) => (isRecent(day) ? "<time>" : time))
      .replace(/\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT/g, "<date>")
      .replace(/test_[0-9a-f]{32}/g, "<database>")
      .replace(/nonce-[\w+/=-]+/g, "nonce-<nonce>")
      .replace(/(?<![\w-])(?=[\w-]*\d)(?=[\w-]*[a-z])(?=[\w-]*[A-Z])[\w-]{32,}(?![\w-])/g, "<random>")
      // A secret of 32 bytes may have no digit.
      .replace(/(?<![\w-])(?:key_)?(?=[\w-]*[a-z])(?=[\w-]*[A-Z])[\w-]{43}(?![\w-])/g, "<random>")
      // The number depends on the parts of the system catalogue that the session has read before.
      .replace(/("Planning": \{\s*"Shared Hit Blocks": )\d+/g, "$1<blocks>")
      // Depends on how long earlier tasks took.
      .replace(/("estimate":)\d+/g, "$1<seconds>")
      .replace(/("csrfToken":)"[^"]+"/g, '$1"<random>"')
      .replace(/("\w*[cC]ursor":)"[^"]+"/g, '$1"<cursor>"')
      .replace(/\b[0-9A-F]+\/[0-9A-F]+(?:\.\d+)?@[0-9a-f]{8}\b/g, "<position>")
      .replace(/\bkey_[\w-]{8}/g, "key_<random>")
  );
}
