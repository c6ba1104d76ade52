import pg from "pg";
import { describe, expect, test } from "vitest";
import { openDatabase } from "#postgres/database";
import { LiveQueries } from "../../../live/queries/live-queries.ts";
import type { LiveSource } from "../../../live/queries/live-subscriber.ts";
import { LiveShape } from "../../../live/shapes/live-shape.ts";
import { isTransactionVisible } from "../../../live/stream/transaction-visibility.ts";
import { useFixture } from "../../fixture.ts";
import { until } from "../../until.ts";
import { QUIET, useFollowed } from "../stream/followed.ts";

const followed = useFollowed();

const pool = useFixture(() => new pg.Pool({ connectionString: followed.database.ownerUrl, max: 4 }));
const database = useFixture(() =>
  openDatabase({ url: followed.database.ownerUrl, ownerUrl: followed.database.ownerUrl, log: QUIET }),
);

const caller = { kind: "known", role: "postgres", claims: {}, claimsText: "{}", expiresAt: null } as const;
const table = { schema: "public", name: "items" };
const definition = { identity: "items", keyPlaces: [0], table } as unknown as LiveShape["definition"];

function openLive(options: Parameters<typeof followed.open>[0] = {}): LiveQueries {
  const asOwner = async <Result>(work: (client: pg.ClientBase) => Promise<Result>) => {
    const client = await pool.connect();
    return work(client).finally(() => client.release());
  };
  const reloadDefinitions = () => Promise.resolve();
  const changes = followed.open(options);
  return new LiveQueries({ asOwner, database, reloadDefinitions, publication: "followed", log: QUIET, changes });
}

const sourceOf = (run: LiveSource["run"]): LiveSource => {
  return { request: "items", caller, quotaKey: "", isPrivate: false, run };
};

const resultOf = (text: string) => ({ text, statements: [], filters: [], shown: [], missing: null });

test("a client that leaves does not wait for a run that does not end", async () => {
  const live = openLive();
  const { promise: hangs, resolve: hang } = Promise.withResolvers<void>();
  let runs = 0;
  const run: LiveSource["run"] = () => {
    if (++runs === 1) return Promise.resolve(resultOf("[]"));
    hang();
    return new Promise(() => {});
  };
  let bytes = 0;
  const onGrown = (_: LiveShape, growth: number) => {
    bytes += growth;
  };
  const shape = new LiveShape({
    ...{ definition, live, source: sourceOf(run), folder: null },
    onFailed: () => {},
    onGrown,
  });
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

test("after changes were missed, the snapshot has the transactions that no change names", async () => {
  const live = openLive({ keep: "never" });
  const run = async () => {
    const { rows } = await pool.query<{ text: string }>(
      "select coalesce(json_agg(array[id::text, name]), '[]')::text as text from items",
    );
    return resultOf(rows[0]!.text);
  };
  const shape = new LiveShape({
    definition,
    live,
    source: sourceOf(run),
    folder: null,
    onFailed: () => {},
    onGrown: () => {},
  });
  await shape.attach();
  const { position } = shape.log;
  expect(shape.log.snapshotSince(position)).toBeNull();
  // The query names no table, so that only the gap has it run again.
  const { rows } = await followed.owner.query<{ txid: string }>(
    "insert into items values (1, 'missed') returning pg_current_xact_id()::xid::text as txid",
  );
  await followed.killReaders();
  await until(() => [...shape.log.rows].length === 1);
  await until(() => shape.log.snapshotSince(position) !== null);
  expect(shape.log.changesSince(position)).toMatchObject([{ xids: [], after: ["1", "missed"] }]);
  expect(isTransactionVisible(Number(rows[0]!.txid), shape.log.snapshotSince(position)!)).toBe(true);
  shape.close();
  live.endAll();
});

describe("equal shapes of one audience", () => {
  const statement = {
    text: "select coalesce(pg_catalog.json_agg(array[id::text, name] order by id), '[]')::pg_catalog.text from public.items",
    values: [],
  };
  const context = { role: "postgres", settings: [["search_path", "public"]] } as const;

  /** Sources of different callers, who count their runs together. */
  function countedSource(person: number, onRun: () => void | Promise<void>): LiveSource {
    const run = async () => {
      await onRun();
      const { rows } = await pool.query<{ coalesce: string }>(statement.text);
      return { ...resultOf(rows[0]!.coalesce), statements: [{ statement, context }] };
    };
    return {
      ...sourceOf(run),
      caller: { ...caller, claimsText: JSON.stringify({ person }) },
      statement: { statement, context },
    };
  }

  const shapeOf = (live: LiveQueries, source: LiveSource) =>
    new LiveShape({ definition, live, source, folder: null, onFailed: () => {}, onGrown: () => {} });

  test("are read once when they are opened together, and follow the same changes", async () => {
    await followed.owner.query("truncate items; insert into items values (1, 'first')");
    const live = openLive();
    let runs = 0;
    const shapes = Array.from({ length: 20 }, (_, person) =>
      shapeOf(
        live,
        countedSource(person, () => void runs++),
      ),
    );
    await Promise.all(shapes.map((shape) => shape.attach()));
    // A shape whose snapshot was read when the first run had begun is read by a second run, as all others like it.
    expect(runs).toBeLessThanOrEqual(2);
    expect(live.statistics()).toMatchObject({ queries: 20, results: 1 });
    for (const { log } of shapes) expect([...log.rows]).toEqual([["1", "first"]]);
    await followed.owner.query("insert into items values (2, 'second')");
    for (const { log } of shapes) await until(() => [...log.rows].length === 2);
    for (const shape of shapes) shape.close();
    live.endAll();
  });

  test("that are opened later have all that was committed before", async () => {
    await followed.owner.query("truncate items");
    const live = openLive();
    const shapes: LiveShape[] = [];
    for (let id = 1; id <= 10; id++) {
      await followed.owner.query("insert into items values ($1, 'new')", [id]);
      const shape = shapeOf(
        live,
        countedSource(id, () => {}),
      );
      shapes.push(shape);
      await shape.attach();
      expect([...shape.log.rows].length).toBe(id);
    }
    for (const shape of shapes) shape.close();
    live.endAll();
  });

  test("are read by each of them if the first run fails", async () => {
    const live = openLive();
    let runs = 0;
    const sources = [0, 1, 2].map((person) =>
      countedSource(person, () => (++runs === 1 ? Promise.reject(new Error("failed")) : undefined)),
    );
    const shapes = sources.map((source) => shapeOf(live, source));
    const opened = await Promise.allSettled(shapes.map((shape) => shape.attach()));
    expect(opened.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "fulfilled", "rejected"]);
    for (const shape of shapes) shape.close();
    live.endAll();
  });
});
