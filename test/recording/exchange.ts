import { Agent, request } from "node:http";

export type RecordedRequest = {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Base64, because a body may be no text. */
  readonly body: string | null;
};

export type RecordedResponse = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
};

export type Exchange = { readonly request: RecordedRequest; readonly response: RecordedResponse };

/** Of the day, of the connection, or a measurement. */
const UNRECORDED = new Set([
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

export function send(baseUrl: string, { method, path, headers, body }: RecordedRequest): Promise<RecordedResponse> {
  const { hostname, port } = new URL(baseUrl);
  const bytes = body === null ? null : Buffer.from(body, "base64");
  // Node leaves the length out for DELETE, and the next request would begin with this one's body.
  const length = bytes === null ? {} : { "Content-Length": bytes.byteLength };
  return new Promise((resolve, reject) => {
    const sent = request(
      { agent, hostname, port, method, path: escapePath(path), headers: { ...length, ...headers } },
      async (response) => {
        const chunks: Buffer[] = [];
        for await (const chunk of response) chunks.push(chunk);
        resolve({
          status: response.statusCode!,
          headers: recordedHeaders(response.headers, baseUrl),
          body: withoutChance(textOf(Buffer.concat(chunks)), baseUrl),
        });
      },
    );
    sent.on("error", reject);
    sent.end(bytes ?? undefined);
  });
}

function escapePath(path: string): string {
  return path.replace(/[^!-~]/gu, encodeURIComponent);
}

function textOf(bytes: Buffer): string {
  const text = bytes.toString("utf8");
  return Buffer.from(text, "utf8").equals(bytes) ? text : `base64:${bytes.toString("base64")}`;
}

function recordedHeaders(headers: NodeJS.Dict<string | string[]>, baseUrl: string): Record<string, string> {
  const entries = Object.entries(headers).flatMap(([name, value]): [string, string][] => {
    if (UNRECORDED.has(name)) return [];
    return [[name, name === "etag" ? "<etag>" : withoutChance(String(value), baseUrl)]];
  });
  return Object.fromEntries(entries.sort(([one], [other]) => (one < other ? -1 : 1)));
}

const START = new Date().toISOString().slice(0, 8);
/** The days and hours around this run; what a fixture says of other days stays as it is. */
const RECENT = new RegExp(String.raw`${START}\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d(:?\d\d)?)?`, "g");

/** Replaces what differs from run to run: times, tokens, ids drawn at random, the address of the server. */
export function withoutChance(text: string, baseUrl: string): string {
  return (
    text
      .replaceAll(baseUrl, "<server>")
      .replaceAll(baseUrl.replace(/^https?:/, ""), "<server>")
      .replaceAll(new URL(baseUrl).host, "<host>")
      .replace(/eyJ[\w-]+\.[\w-]+\.[\w-]*/g, "<token>")
      .replace(/\b[0-9a-f]{8}-[0-9a-f]{4}-[47][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\b/gi, "<uuid>")
      .replace(RECENT, "<time>")
      .replace(/\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT/g, "<date>")
      .replace(/test_[0-9a-f]{32}/g, "<database>")
      .replace(/nonce-[\w+/=-]+/g, "nonce-<nonce>")
      .replace(/(?<![\w-])(?=[\w-]*\d)(?=[\w-]*[a-z])(?=[\w-]*[A-Z])[\w-]{32,}(?![\w-])/g, "<random>")
      // A secret of 32 bytes may have no digit.
      .replace(/(?<![\w-])(?:key_)?(?=[\w-]*[a-z])(?=[\w-]*[A-Z])[\w-]{43}(?![\w-])/g, "<random>")
      // Depends on what the session has read of the system catalogue before.
      .replace(/("Planning": \{\s*"Shared Hit Blocks": )\d+/g, "$1<blocks>")
      // Depends on how long earlier tasks took.
      .replace(/("estimate":)\d+/g, "$1<seconds>")
      .replace(/("csrfToken":)"[^"]+"/g, '$1"<random>"')
      .replace(/("\w*[cC]ursor":)"[^"]+"/g, '$1"<cursor>"')
      .replace(/\b[0-9A-F]+\/[0-9A-F]+(?:\.\d+)?@[0-9a-f]{8}\b/g, "<position>")
      .replace(/\bkey_[\w-]{8}/g, "key_<random>")
  );
}
