import { once } from "node:events";
import { WebSocket } from "ws";
import type { Table } from "./described.ts";
import { canonical, isRecord, type Json, parseJson } from "./exact.ts";
import type { Findings } from "./findings.ts";
import { insertOneMore, qualified, quoted } from "./rows.ts";
import { type Served, tokenOf } from "./served.ts";

export type TestResponse = {
  readonly type: string;
  readonly table: string;
  readonly record: Json;
  readonly oldRecord: Json;
};

/** Follows every table of the schema, until `changes` has been made and all that came of it has been told. */
export async function followChanges(
  { schema, service, owner, caller }: Served,
  changes: () => Promise<void>,
): Promise<readonly TestResponse[]> {
  const address = `${service.url.replace("http", "ws")}/realtime/v1/websocket?apikey=${tokenOf(caller)}&vsn=2.0.0`;
  const socket = new WebSocket(address);
  const result: TestResponse[] = [];
  const problems: string[] = [];
  let last: (() => void) | null = null;
  const joined = Promise.withResolvers<void>();
  const postgres_changes = [{ event: "*", schema: schema.name }];
  const join = () =>
    socket.send(JSON.stringify(["1", "1", "realtime:crawler", "phx_join", { config: { postgres_changes } }]));
  socket.on("message", (data: Buffer) => {
    const [, , , event, payload] = parseJson(data.toString()) as readonly Json[];
    if (!isRecord(payload!)) return;
    // A slot is created when the transactions of other tests have ended.
    if (event === "phx_reply" && payload.status === "error") return join();
    if (event === "system")
      canonical(payload.status) === '"ok"' ? joined.resolve() : joined.reject(new Error(canonical(payload)));
    if (event !== "postgres_changes" || !isRecord(payload.data)) return;
    const { type, table, record = null, old_record: oldRecord = null, errors } = payload.data;
    if (table === END) last?.();
    else result.push({ type: String(type), table: String(table), record, oldRecord });
    if (Array.isArray(errors)) problems.push(canonical(errors));
  });
  const lost = Promise.withResolvers<never>();
  socket.once("close", (code, reason) =>
    lost.reject(new Error(`the socket was closed: ${code} ${reason} (${result.length} changes)`)),
  );
  lost.promise.catch(() => {});
  await once(socket, "open");
  join();
  await Promise.race([joined.promise, lost.promise]);
  await changes();
  const ended = new Promise<void>((resolve) => {
    last = resolve;
  });
  // Changes come in the order of their commits.
  await owner.query(`insert into ${quoted(schema.name)}.${END} default values`);
  await Promise.race([ended, lost.promise]);
  socket.close();
  await once(socket, "close");
  return result;
}

/** A table of the crawler's own, whose change says that there are no more before it. */
export const END = "_the_end";

export function endTable(schema: string): string {
  return `create table ${quoted(schema)}.${END} (id bigint generated always as identity primary key)`;
}

/** True if changes of its rows can be published. */
export function isTold({ kind, isPartition, isLogged }: Table): boolean {
  return (kind === "r" || kind === "p") && !isPartition && isLogged;
}

/** The rows as changes have them. */
export async function loggedRows({ sql }: Served, table: Table): Promise<readonly string[]> {
  const columns = table.columns.filter(({ virtual }) => !virtual).map(({ name }) => quoted(name));
  return (await sql(`select ${columns.join(", ")} from ${table.kind === "r" ? "only " : ""}${qualified(table)}`)).map(
    canonical,
  );
}

/** Makes one insert and one update of each published table, and compares the messages with the rows in SQL. */
export async function crawlRealtime(served: Served, findings: Findings): Promise<void> {
  const { owner, tables } = served;
  const stored = tables.filter(isTold);
  const inserted = new Set<Table>();
  const result = await followChanges(served, async () => {
    // Triggers would change other rows than those that are looked at.
    await owner.query("set session_replication_role = replica");
    for (const table of stored) {
      if (await insertOneMore(owner, table, stored, 5)) inserted.add(table);
      const column = table.columns.find(({ generated }) => !generated)?.name;
      if (column) await owner.query(`update ${qualified(table)} set ${quoted(column)} = ${quoted(column)}`);
    }
    await owner.query("set session_replication_role = origin");
  });
  const byTable = Map.groupBy(result, ({ table }) => table);
  for (const table of stored) {
    const rows = new Set(await loggedRows(served, table));
    const events = byTable.get(table.name) ?? [];
    const insert = events.find(({ type }) => type === "INSERT");
    // Rows of tables without a key are not told.
    const hasRow = table.primaryKey.length > 0;
    if (inserted.has(table)) {
      const got = canonical(insert?.record ?? null);
      findings.note(
        "realtime",
        table.name,
        "insert",
        hasRow ? rows.has(got) : insert !== undefined,
        "a row of the table",
        got,
      );
    }
    const updates = new Set(events.filter(({ type }) => type === "UPDATE").map(({ record }) => canonical(record)));
    const isRight = hasRow ? [...rows].every((row) => updates.has(row)) : updates.size > 0 || rows.size === 0;
    findings.note("realtime", table.name, "update", isRight, [...rows].join(), [...updates].join());
  }
}
