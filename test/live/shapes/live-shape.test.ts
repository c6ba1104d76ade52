import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Database, openDatabase } from "#postgres/database";
import { LiveQueries, type LiveSource } from "../../../live/queries/live-queries.ts";
import { LiveShape } from "../../../live/shapes/live-shape.ts";
import { QUIET, useFollowed } from "../followed.ts";

const followed = useFollowed();
let pool: pg.Pool;
let database: Database;

beforeAll(() => {
  pool = new pg.Pool({ connectionString: followed.database.ownerUrl, max: 4 });
  database = openDatabase({ url: followed.database.ownerUrl, ownerUrl: followed.database.ownerUrl, log: QUIET });
});
afterAll(async () => {
  await database.close();
  await pool.end();
});

test("a client that leaves does not wait for a run that does not end", async () => {
  const asOwner = async <Result>(work: (client: pg.ClientBase) => Promise<Result>) => {
    const client = await pool.connect();
    return work(client).finally(() => client.release());
  };
  const reloadDefinitions = () => Promise.resolve();
  const live = new LiveQueries({
    ...{ asOwner, database, reloadDefinitions, publication: "followed", log: QUIET },
    changes: followed.open(),
  });
  const caller = { kind: "known", role: "postgres", claims: {}, claimsText: "{}", expiresAt: null } as const;
  const { promise: hangs, resolve: hang } = Promise.withResolvers<void>();
  let runs = 0;
  const run: LiveSource["run"] = () => {
    if (++runs === 1) return Promise.resolve({ text: "[]", statements: [], filters: [], shown: null, missing: null });
    hang();
    return new Promise(() => {});
  };
  const source: LiveSource = { request: "items", caller, quotaKey: "", isPrivate: false, run };
  const table = { schema: "public", name: "items" };
  const definition = { identity: "items", keyPlaces: [0], table } as unknown as LiveShape["definition"];
  let bytes = 0;
  const onGrown = (_: LiveShape, growth: number) => {
    bytes += growth;
  };
  const shape = new LiveShape({ definition, live, source, folder: null, onFailed: () => {}, onGrown });
  await shape.attach();
  expect(bytes).toBe(shape.log.bytes);
  const client = new AbortController();
  const reconciled = shape.reconcile("[]", client.signal);
  await hangs;
  client.abort(new Error("left"));
  await expect(reconciled).rejects.toThrow("left");
  shape.close();
  live.endAll();
});
