import { ITEMS, OWNERS } from "../measuring/schema.ts";
import type { Load } from "./load.ts";
import { API_KEY } from "./tokens.ts";

/** The table interface's grammar, or addresses that somebody has written handlers for. */
export type Dialect = "tables" | "handlers";

/** A multiple of `step`, from 0 to below `count * step`. */
export type Drawn = { readonly step: number; readonly count: number };

export type Work = {
  readonly name: string;
  readonly method: "GET" | "POST";
  /** `{n}` is drawn anew each time. */
  readonly path: Readonly<Record<Dialect, string>>;
  /** From what it is drawn; the ids of the caller's items as a rule. */
  readonly drawn?: Drawn;
  readonly body: string | null;
  readonly tokens: "cached" | "fresh";
  readonly connections: number;
  /** As many as serve pgbench best: commits share a flush, reads compete for the processors. Null: no work for pgbench. */
  readonly pgbenchClients: number | null;
  /** Rows that one request writes, where that is the measure. */
  readonly rows?: number;
};

export const READ = { method: "GET", body: null, tokens: "cached", connections: 16, pgbenchClients: 8 } as const;

/** What `{n}` stands for: the ids of the caller's items. */
export const DRAWN: Drawn = { step: OWNERS, count: ITEMS / OWNERS };

/** A request of the work to somebody: without its token, and without what is drawn, if anything is. */
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
