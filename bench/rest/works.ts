import { ITEMS, OWNERS } from "../schema.ts";
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

const ONE_ROW: Work = {
  ...READ,
  name: "one row by key",
  path: { tables: "/items?id=eq.{n}", handlers: "/items/{n}" },
};

export const WORKS: readonly Work[] = [
  ONE_ROW,
  { ...ONE_ROW, name: "one row by key, a new token each time", tokens: "fresh" },
  {
    ...READ,
    name: "20 rows with a many-to-one embed",
    path: {
      tables: "/comments?select=id,content,items(id,title)&id=gt.{n}&order=id&limit=20",
      handlers: "/comments?after={n}",
    },
  },
  {
    ...READ,
    name: "one row with a one-to-many embed",
    path: { tables: "/items?select=id,title,comments(id,content)&id=eq.{n}", handlers: "/items/{n}/with-comments" },
  },
  {
    name: "insert one row",
    method: "POST",
    path: { tables: "/events", handlers: "/events" },
    body: JSON.stringify(eventOf(1)),
    tokens: "cached",
    connections: 16,
    pgbenchClients: 16,
  },
  bulkInsert(1_000),
  bulkInsert(10_000),
];

/** What `{n}` stands for: the ids of the caller's items. */
export const DRAWN: Drawn = { step: OWNERS, count: ITEMS / OWNERS };

export function eventOf(n: number) {
  return { kind: "bench", payload: { n, said: "something that is as long as such things are" } };
}

function bulkInsert(rows: number): Work {
  return {
    name: `insert ${rows.toLocaleString("en")} rows`,
    method: "POST",
    path: { tables: "/events", handlers: "/events/many" },
    body: JSON.stringify(Array.from({ length: rows }, (_, n) => eventOf(n))),
    tokens: "cached",
    connections: 1,
    pgbenchClients: null,
    rows,
  };
}

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
