import { Agent, request } from "node:http";
import jwt from "jsonwebtoken";
import { SECRET } from "../../../secret.ts";
import type { Caller, Case } from "./case.ts";

/** The parts of an answer by which a client can tell two apart. */
export type Answer = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** JSON is read, so that spaces do not count; see `readJson`. */
  readonly body: unknown;
  /** The names of the first row in their order, which Postgres keeps and PostgREST does not where relations are embedded. */
  readonly columns: readonly string[] | null;
};

/** The headers that are part of the interface; of others, such as Date, each program has its own. */
const COMPARED =
  /^(allow|content-(location|profile|range|type)|location|preference-applied|proxy-status|www-authenticate|set-cookie|cache-control|x-(fixture|tea).*)$/;

/** Ours where SQL sets none; PostgREST sends none. */
const OUR_CACHING = "private, no-cache";

const agent = new Agent({ keepAlive: true, maxSockets: 4 });

/** Asks one program. Its base address is no part of its answers. */
export async function answerTo(attempt: Case, baseUrl: string): Promise<Answer> {
  const { hostname, port, pathname } = new URL(baseUrl);
  const prefix = pathname === "/" ? "" : pathname;
  const options = {
    agent,
    hostname,
    port,
    method: attempt.method,
    path: prefix + wirePath(attempt.path),
    headers: { ...lengthOf(attempt.body), ...authorization(attempt.caller), ...attempt.headers },
  };
  return new Promise((resolve, reject) => {
    const sent = request(options, async (response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of response) chunks.push(chunk);
      const headers = Object.entries(response.headers).filter(
        ([name, value]) => COMPARED.test(name) && value !== OUR_CACHING,
      );
      const read = Object.fromEntries(headers.map(([name, value]) => [name, readHeader(name, String(value), prefix)]));
      resolve({ status: response.statusCode!, headers: read, ...readBody(Buffer.concat(chunks), read) });
    });
    sent.on("error", reject);
    sent.end(attempt.body);
  });
}

/** Escapes the characters that HTTP allows in no request line: cases are written to be read. */
function wirePath(path: string): string {
  return path.replace(/[^!-~]/gu, encodeURIComponent);
}

/** Node leaves the length out for DELETE, and the next request would then begin with this one's body. */
function lengthOf(body: Case["body"]): Record<string, number> {
  return body === null ? {} : { "Content-Length": Buffer.byteLength(body) };
}

function authorization(caller: Caller): Record<string, string> {
  if (caller === "anon") return {};
  const token = "token" in caller ? String(caller.token) : jwt.sign(caller, SECRET, { noTimestamp: true });
  return { Authorization: `Bearer ${token}` };
}

function readHeader(name: string, value: string, prefix: string): string {
  if (name === "www-authenticate") return "present";
  if (name === "content-location") return placeOf(value.replace(prefix, ""));
  if (name === "location") return value.replace(prefix, "");
  return name === "content-type" ? value.toLowerCase().replaceAll(" ", "") : value;
}

/** Removes the query: that of the request, which PostgREST sorts, joins where a name comes twice, and misspells beyond ASCII. */
function placeOf(address: string): string {
  return decodeURIComponent(Buffer.from(address.split("?")[0]!, "latin1").toString("utf8"));
}

function readBody(body: Buffer, headers: Answer["headers"]): Pick<Answer, "body" | "columns"> {
  const text = body.toString("utf8");
  if (!/json/.test(headers["content-type"] ?? "") || text === "") return { body: text, columns: null };
  const read = readJson(text);
  const first: unknown = Array.isArray(read) ? read[0] : read;
  const isRow = typeof first === "object" && first !== null && !Array.isArray(first) && !("hint" in first);
  return { body: read, columns: isRow ? Object.keys(first) : null };
}

/** A number that JavaScript would change (1.50, 9223372036854775807) stays as it is spelt. */
function readJson(text: string): unknown {
  const keepSpelling = (_key: string, value: unknown, { source }: { source?: string }) =>
    typeof value === "number" && String(value) !== source ? `number ${source}` : value;
  try {
    return JSON.parse(text, keepSpelling as Parameters<typeof JSON.parse>[1]);
  } catch {
    return `not JSON: ${text}`;
  }
}
