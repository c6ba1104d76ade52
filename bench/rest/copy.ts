import pg from "pg";
import type { Copier } from "../comparison/runners.ts";
import { CALLER } from "../measuring/schema.ts";
import type { Scratch } from "../measuring/scratch.ts";
import { eventOf } from "./works.ts";

/** A copy of the table for bulk inserts without row-level security, with which COPY fails (0A000). */
const UNGUARDED = `
  create table events_unguarded (like events including all);
  grant insert on events_unguarded to authenticated;
`;

/** Starts the measure of bulk loads: COPY of a prepared text as the same caller, each in a separate transaction. */
export async function startCopier(scratch: Scratch): Promise<AsyncDisposable & Copier> {
  await scratch.execute(UNGUARDED);
  const client = new pg.Client({ connectionString: scratch.url("authenticator") });
  await client.connect();
  await client.query("select set_config('role', 'authenticated', false), set_config('request.jwt.claims', $1, false)", [
    JSON.stringify({ sub: CALLER, role: "authenticated" }),
  ]);
  return {
    async run(rows, seconds) {
      const data = textOf(rows);
      const start = performance.now();
      let count = 0;
      for (; performance.now() < start + 1_000 * seconds; count++) await copy(client, data);
      return (1_000 * count * rows) / (performance.now() - start);
    },
    [Symbol.asyncDispose]: () => client.end(),
  };
}

function textOf(rows: number): Buffer {
  const line = (n: number) => {
    const { kind, payload } = eventOf(n);
    return `${kind}\t${JSON.stringify(payload)}\n`;
  };
  return Buffer.from(Array.from({ length: rows }, (_, n) => line(n)).join(""));
}

type CopyConnection = pg.Connection & { sendCopyFromChunk(chunk: Buffer): void; endCopyFrom(): void };

/** pg passes its connection to an object with these methods. */
function copy(client: pg.Client, data: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    client.query({
      submit: (connection: pg.Connection) => connection.query("copy events_unguarded (kind, payload) from stdin"),
      handleCopyInResponse(connection: CopyConnection) {
        connection.sendCopyFromChunk(data);
        connection.endCopyFrom();
      },
      handleCommandComplete() {},
      handleError: reject,
      handleReadyForQuery: () => resolve(),
    } as pg.Submittable);
  });
}
