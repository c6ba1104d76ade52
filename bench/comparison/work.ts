import { ITEMS, OWNERS } from "../measuring/schema.ts";
import type { Load } from "./load.ts";
import { API_KEY } from "./tokens.ts";

/** The grammar of the table interface, or the paths of handwritten handlers. */
export type Dialect = "tables" | "handlers";

/** A multiple of `step`, from 0 to below `count * step`, drawn at random. */
export type Drawn = { readonly step: number; readonly count: number };

export type Work = {
  readonly name: string;
  readonly method: "GET" | "POST";
  /** The path; each request draws a new `{n}`. */
  readonly path: Readonly<Record<Dialect, string>>;
  /** The range of `{n}`; by default the ids of the caller's items. */
  readonly drawn?: Drawn;
  readonly body: string | null;
  readonly tokens: "cached" | "fresh";
  readonly connections: number;
  /** The best number of pgbench clients: commits share a flush, reads compete for the processors. Null if pgbench does not run the work. */
  readonly pgbenchClients: number | null;
  /** The rows that one request writes, if rows are the measure. */
  readonly rows?: number;
};

export const READ = { method: "GET", body: null, tokens: "cached", connections: 16, pgbenchClients: 8 } as const;

/** The values of `{n}`: the ids of the caller's items. */
export const DRAWN: Drawn = { step: OWNERS, count: ITEMS / OWNERS };

/** Returns the request of the work for a server, without its token and without the drawn value, if it has one. */
export function requestOf(
  { method, path, body, drawn = DRAWN }: Work,
  { dialect, base }: { readonly dialect: Dialect; readonly base: URL },
): Pick<Load, "port" | "request" | "values"> {
  const [before, after] = `${method} ${base.pathname.replace(/\/$/, "")}${path[dialect]}`.split("{n}");
  const content = body ? `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n` : "";
  const headers = `Host: ${base.host}\r\nAccept: application/json\r\n${content}apikey: ${API_KEY}\r\n`;
  return {
    port: Number(base.port),
    request: [before!, `${after ?? ""} HTTP/1.1\r\n${headers}Authorization: Bearer `, `\r\n\r\n${body ?? ""}`],
    values: after === undefined ? null : drawn,
  };
}
