import { setTimeout as sleep } from "node:timers/promises";
import { beforeAll, describe, expect, test } from "vitest";
import type { Database } from "../../../postgres/database/database.ts";
import type { StreamRowsOptions } from "../../../postgres/database/database-options.ts";
import type { RowChunk } from "../../../postgres/database/result-collectors.ts";
import type { Statement } from "../../../postgres/database/statement.ts";
import { useFixture } from "../../fixture.ts";
import { until } from "../../until.ts";
import { alice, anon, open, PID, sql } from "./open.ts";

let database: Database;
const opened = useFixture(() =>
  open("create table seats (id int unique deferrable initially deferred); grant all on seats to anon", {
    // One link for streams, so that each test meets the session that the one before has used.
    poolSize: 1,
  }),
);
beforeAll(async () => {
  database = opened.database;
});

const numbers = (count: number) =>
  sql("select json_build_object('n', n)::text from generate_series(1, $1::int) n", String(count));
const stream = (statement: Statement, options: Partial<StreamRowsOptions> = {}) =>
  database.stream(anon, statement, { separator: ",", ...options });

async function collect(chunks: AsyncIterable<RowChunk>): Promise<RowChunk[]> {
  const all: RowChunk[] = [];
  for await (const chunk of chunks) all.push(chunk);
  return all;
}

const textOf = (chunks: readonly RowChunk[]) => Buffer.concat(chunks.map(({ data }) => data)).toString();
const streamPid = async () => textOf(await collect(stream(PID)));
const activeSessions = async (mark: string) =>
  (
    await opened.owner.query(
      "select 1 from pg_stat_activity where datname = current_database() and state = 'active' and query like '%' || $1 || '%' and pid <> pg_backend_pid()",
      [mark],
    )
  ).rowCount!;

describe("a stream of rows", () => {
  test("is one chunk if it is short, and the last one", async () => {
    const chunks = await collect(stream(numbers(3)));
    expect(chunks).toHaveLength(1);
    expect(chunks[0]).toMatchObject({ rows: 3, last: true });
    expect(textOf(chunks)).toBe('{"n" : 1},{"n" : 2},{"n" : 3}');
  });

  test("may be empty, and nulls are empty too", async () => {
    expect(await collect(stream(numbers(0)))).toMatchObject([{ data: Buffer.alloc(0), rows: 0, last: true }]);
    expect(textOf(await collect(stream(sql("values (null), ('a'), (null), ('b')"))))).toBe(",a,,b");
  });

  test("has the other columns of the first row with its first chunk only", async () => {
    const statement = sql("select repeat('x', 70000 * n), null, 'a' || n, 'ü' from generate_series(1, 3) n");
    const heads = (await collect(stream(statement))).map(({ head }) => head);
    expect(heads).toEqual([[null, "a1", "ü"], ...new Array(heads.length - 1).fill(null)]);
    expect(await collect(stream(numbers(3)))).toMatchObject([{ head: [] }]);
    expect(await collect(stream(numbers(0)))).toMatchObject([{ head: null }]);
  });

  test("has many chunks of about 64 kB if it is long, with all rows in order", async () => {
    const chunks = await collect(stream(numbers(50_000)));
    expect(chunks.length).toBeGreaterThan(8);
    expect(chunks.reduce((sum, { rows }) => sum + rows, 0)).toBe(50_000);
    expect(chunks.map(({ last }) => last)).toEqual([...new Array(chunks.length - 1).fill(false), true]);
    for (const { data } of chunks) expect(data.length).toBeLessThanOrEqual(65_536);
    const parsed = JSON.parse(`[${textOf(chunks)}]`) as { n: number }[];
    expect(parsed.every(({ n }, index) => n === index + 1)).toBe(true);
  });

  test("accepts rows of any size", async () => {
    const sizes = [0, 10, 70_000, 1, 3_000_000, 65_536, 65_535, 2];
    const statement = sql("select repeat('x', n) from unnest($1::int[]) n", `{${sizes}}`);
    const text = textOf(await collect(stream(statement)));
    expect(text.split(",").map((row) => row.length)).toEqual(sizes);
  });

  test("splits rows that are larger than a chunk, so that a slow reader makes progress", async () => {
    const chunks = await collect(stream(sql("select repeat('x', 1000000) from generate_series(1, 3)")));
    for (const { data } of chunks) expect(data.length).toBeLessThanOrEqual(65_536);
    expect(textOf(chunks)).toBe(new Array(3).fill("x".repeat(1_000_000)).join(","));
    expect(chunks.reduce((sum, { rows }) => sum + rows, 0)).toBe(3);
    expect(chunks.map(({ last }) => last)).toEqual([...new Array(chunks.length - 1).fill(false), true]);
  });

  test("starts at the first read, as the caller, and is read-only by default", async () => {
    const chunks = database.stream(alice, sql("select current_user::text"), { separator: "" });
    expect(textOf(await collect(chunks))).toBe("authenticated");
    const write = sql("insert into seats values (1) returning id::text");
    await expect(collect(stream(write))).rejects.toMatchObject({ code: "25006" });
    expect(textOf(await collect(stream(write, { readOnly: false })))).toBe("1");
  });

  test("that fails within its first 64 kB fails before its first chunk", async () => {
    const statement = sql("select (1 / (500 - n))::text from generate_series(1, 1000) n");
    await expect(stream(statement).next()).rejects.toMatchObject({ code: "22012" });
    const deferred = sql("insert into seats select 7 from generate_series(1, 2) returning id::text");
    await expect(stream(deferred, { readOnly: false }).next()).rejects.toMatchObject({ code: "23505" });
  });

  test("that fails later fails at that row", async () => {
    const chunks = stream(sql("select (1 / (90000 - n))::text from generate_series(1, 100000) n"));
    expect(await chunks.next()).toMatchObject({ done: false, value: { last: false } });
    await expect(collect(chunks)).rejects.toMatchObject({ code: "22012" });
  });

  test("makes the server wait for a slow reader, with constant memory", async () => {
    const chunks = stream(sql("select repeat('x', 1000) || n from generate_series(1, 400000) n"));
    await chunks.next();
    const before = process.memoryUsage.rss();
    await sleep(300);
    // 400 MB are not here and not in the socket: the server is not done.
    expect(await activeSessions("repeat('x', 1000)")).toBe(1);
    let rows = 0;
    for await (const chunk of chunks) {
      rows += chunk.rows;
      chunk.release();
    }
    expect(rows).toBeGreaterThan(399_000);
    expect(process.memoryUsage.rss() - before).toBeLessThan(32 * 2 ** 20);
  });

  test("reuses only released chunks", async () => {
    const texts: string[] = [];
    const kept: RowChunk[] = [];
    for await (const chunk of stream(numbers(200_000))) {
      texts.push(chunk.data.toString());
      if (texts.length % 2) kept.push(chunk);
      else {
        chunk.release();
        chunk.release();
      }
    }
    expect(kept.map(({ data }) => data.toString())).toEqual(texts.filter((_, index) => index % 2 === 0));
    expect(JSON.parse(`[${texts.join("")}]`)).toHaveLength(200_000);
  });

  test("that is closed early cancels the query, and the session continues with the next one", async () => {
    const before = await streamPid();
    for await (const chunk of stream(sql("select repeat('left', 100) || n from generate_series(1, 10000000) n"))) {
      expect(chunk.rows).toBeGreaterThan(0);
      break;
    }
    expect(await streamPid()).toBe(before);
    expect(await activeSessions("left")).toBe(0);
  });

  test("that is aborted by signal ends too, also before the first row and without a reader", async () => {
    for (const statement of [
      sql("select pg_sleep(20)::text -- given up"),
      sql("select repeat('given up', 100) from generate_series(1, 10000000)"),
    ]) {
      const stop = new AbortController();
      const chunks = stream(statement, { signal: stop.signal });
      const first = chunks.next();
      await until(async () => (await activeSessions("given up")) > 0);
      await sleep(50);
      stop.abort(new Error("no longer needed"));
      await expect(first.then(() => collect(chunks))).rejects.toThrow("no longer needed");
      expect(await streamPid()).toMatch(/^\d+$/);
      expect(await activeSessions("given up")).toBe(0);
    }
  });

  test("ends if it is not read for too long", async () => {
    const chunks = stream(sql("select repeat('stalled', 100) from generate_series(1, 10000000)"), { stallMs: 100 });
    await chunks.next();
    await until(async () => (await activeSessions("stalled")) === 0);
    // Chunks that arrived before the cancel may come first.
    await expect(collect(chunks)).rejects.toMatchObject({ kind: "timeout", code: "57014" });
    expect(await streamPid()).toMatch(/^\d+$/);
  });

  test("has a limit for its pauses, not for its duration", async () => {
    // Postgres sends when it has 8 kB to send.
    const trickle = sql("select pg_sleep(0.1)::text || repeat('x', 9000) from generate_series(1, 20) n");
    const chunks = await collect(stream(trickle, { timeoutMs: 1_000 }));
    expect(chunks.reduce((sum, { rows }) => sum + rows, 0)).toBe(20);
    const silent = sql("select pg_sleep(20)::text");
    await expect(collect(stream(silent, { timeoutMs: 200 }))).rejects.toMatchObject({ code: "57014" });
  });

  test("restarts if its connection is lost before the first chunk was read", async () => {
    const chunks = stream(sql("select pg_sleep(0.1)::text || 'anew' || n from generate_series(1, 5) n"));
    const first = chunks.next();
    await until(async () => (await activeSessions("anew")) > 0);
    await opened.owner.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and query like '%anew%' and pid <> pg_backend_pid()",
    );
    expect(await first).toMatchObject({ value: { rows: 5, last: true } });
  });

  test("does not restart after that", async () => {
    const chunks = stream(sql("select repeat('seen', 100) || n from generate_series(1, 10000000) n"));
    await chunks.next();
    await opened.owner.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and query like '%seen%' and pid <> pg_backend_pid()",
    );
    await expect(collect(chunks)).rejects.toMatchObject({ kind: "unavailable", code: "PGRST001" });
  });
});
