import pg from "pg";
import { CALLER } from "../schema.ts";
import type { Scratch } from "../scratch.ts";

/** The table that bulk inserts go to, but for row-level security, with which COPY refuses to work (0A000). */
const UNGUARDED = `
  create table events_unguarded (like events including all);
  grant insert on events_unguarded to authenticated;
`;

export type Copier = AsyncDisposable & {
  /** Rows per second, each COPY in a transaction of its own. */
  run(text: string, rows: number, seconds: number): Promise<number>;
};

/** What bulk loads are measured by: COPY from a client who has the text ready, as the same caller. */
export async function startCopier(scratch: Scratch): Promise<Copier> {
  await scratch.execute(UNGUARDED);
  const client = new pg.Client({ connectionString: scratch.url("authenticator") });
  await client.connect();
  await client.query("select set_config('role', 'authenticated', false), set_config('request.jwt.claims', $1, false)", [
    JSON.stringify({ sub: CALLER, role: "authenticated" }),
  ]);
  return {
    async run(text, rows, seconds) {
      const data = Buffer.from(text);
      const start = performance.now();
      let count = 0;
      for (; performance.now() < start + 1_000 * seconds; count++) await copy(client, data);
      return (1_000 * count * rows) / (performance.now() - start);
    },
    [Symbol.asyncDispose]: () => client.end(),
  };
}

type CopyConnection = pg.Connection & { sendCopyFromChunk(chunk: Buffer): void; endCopyFrom(): void };

/** pg hands its connection to whatever has these methods. */
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
