import { getEventListeners, once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { beforeAll, describe, expect, test } from "vitest";
import { type Database, openDatabase } from "../../../postgres/database/database.ts";
import { useFixture } from "../../fixture.ts";
import { anon, commonOptions, open, sql } from "./open.ts";

let database: Database;
const opened = useFixture(() =>
  open("create table entries (id int primary key); grant all on entries to anon", { poolSize: 1 }),
);
beforeAll(async () => {
  database = opened.database;
});

const nap = (mark: string, seconds = 10) => sql(`select pg_sleep(${seconds}), '${mark}' as mark`);

/** Waits until a session runs a statement with the mark. */
async function sessionOf(mark: string, except = 0, { owner } = opened): Promise<number> {
  for (;;) {
    const { rows } = await owner.query<{ pid: number }>(
      `select pid from pg_stat_activity
        where datname = current_database() and state = 'active' and query like '%' || $1 || '%' and pid not in (pg_backend_pid(), $2)`,
      [mark, except],
    );
    if (rows[0]) return rows[0].pid;
    await sleep(5);
  }
}

const terminate = (pid: number) => opened.owner.query("select pg_terminate_backend($1)", [pid]);

/** Stands before the server and delays each CancelRequest. */
async function cancelsComeLate(url: string, milliseconds: number): Promise<AsyncDisposable & { readonly url: string }> {
  const place = new URL(url.replace("@/", "@localhost/"));
  const path = `${place.searchParams.get("host")}/.s.PGSQL.${place.searchParams.get("port")}`;
  const server = createServer((client) => {
    client.once("data", async (first) => {
      client.pause();
      if (first.readInt32BE(4) === 80_877_102) await sleep(milliseconds);
      const postgres = connect(path);
      for (const socket of [client, postgres]) {
        socket.on("error", () => {});
        socket.on("close", () => [client, postgres].map((other) => other.destroy()));
      }
      postgres.write(first);
      client.pipe(postgres).pipe(client);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const [user, database] = [place.username, place.pathname];
  const close = async () => void server.close();
  return { url: `postgresql://${user}@127.0.0.1:${port}${database}`, [Symbol.asyncDispose]: close };
}

describe("a request whose connection is lost", () => {
  test("runs again if it is read-only", async () => {
    const reading = database.run(anon, nap("read once", 0.3), { readOnly: true });
    await terminate(await sessionOf("read once"));
    expect((await reading).rows).toEqual([["", "read once"]]);
  });

  test("runs again once, not forever", async () => {
    const reading = database.run(anon, nap("read twice"), { readOnly: true });
    const outcome = expect(reading).rejects.toMatchObject({
      kind: "unavailable",
      code: "PGRST001",
      retryAfterSeconds: 1,
    });
    const first = await sessionOf("read twice");
    await terminate(first);
    await terminate(await sessionOf("read twice", first));
    await outcome;
  });

  test("runs again while it meets connections that were open when the first was lost", async () => {
    await using wide = await open("", { poolSize: 40 });
    const read = (mark: string, seconds: number) => wide.database.run(anon, nap(mark, seconds), { readOnly: true });
    await Promise.all([read("opens one", 0.1), read("opens another", 0.1), read("opens a third", 0.1)]);
    const reading = read("read thrice", 2);
    const first = await sessionOf("read thrice", 0, wide);
    await terminate(first);
    await terminate(await sessionOf("read thrice", first, wide));
    expect((await reading).rows).toEqual([["", "read thrice"]]);
  });

  test("fails with an unknown outcome if it writes", async () => {
    const writing = database.run(anon, sql("insert into entries select 1 from pg_sleep(10) -- unknown"));
    const outcome = expect(writing).rejects.toMatchObject({ kind: "unavailable", code: "08007" });
    await terminate(await sessionOf("-- unknown"));
    await outcome;
    expect((await database.run(anon, sql("select * from entries"))).rows).toEqual([]);
  });
});

describe("a cancelled request", () => {
  test("cancels the statement on its own connection, and not the next one", async () => {
    const stop = new AbortController();
    const running = database.run(anon, nap("given up"), { signal: stop.signal });
    const outcome = expect(running).rejects.toThrow("no longer needed");
    await sessionOf("given up");
    stop.abort(new Error("no longer needed"));
    await outcome;
    for (let index = 0; index < 20; index++) {
      expect((await database.run(anon, sql("select pg_sleep(0.005), $1", String(index)))).rows[0]![1]).toBe(
        String(index),
      );
    }
  });

  test("keeps its connection until the server has received the cancel request, however late that is", async () => {
    await using slow = await cancelsComeLate(opened.url, 300);
    const late = openDatabase({
      url: slow.url,
      ownerUrl: slow.url,
      log: { info() {}, warn() {} },
      poolSize: 1,
      ...commonOptions.current,
    });
    const stop = new AbortController();
    const running = late.run(anon, nap("short nap", 0.2), { signal: stop.signal });
    await sessionOf("short nap");
    stop.abort(new Error("no longer needed"));
    await expect(running).rejects.toThrow("no longer needed");
    // The cancel would hit it if it were sent at once.
    await late.run(anon, nap("next nap", 0.6));
    await late.close();
  });

  test("leaves the queue if it still waits", async () => {
    const stop = new AbortController();
    const first = database.run(anon, nap("first in line", 0.2));
    const waiting = database.run(anon, nap("second in line"), { signal: stop.signal });
    await sleep(20);
    expect(database.state().pools.write.waiting).toBe(1);
    stop.abort(new Error("no longer needed"));
    await expect(waiting).rejects.toThrow("no longer needed");
    expect(database.state().pools.write.waiting).toBe(0);
    await first;
  });

  test("does not start if it was cancelled before", async () => {
    const signal = AbortSignal.abort(new Error("no longer needed"));
    await expect(database.run(anon, sql("insert into entries values (3)"), { signal })).rejects.toThrow(
      "no longer needed",
    );
    expect((await database.run(anon, sql("select * from entries where id = 3"))).rows).toEqual([]);
  });

  test("leaves no listener on a signal with a longer lifetime", async () => {
    const { signal } = new AbortController();
    await database.run(anon, sql("select 1"), { signal });
    await database.run(anon, sql("select 1/0"), { signal }).catch(() => {});
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });
});
