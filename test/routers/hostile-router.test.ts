import pg from "pg";
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { DATA_ROW, READY_FOR_QUERY, readRow } from "../../postgres/client/server-messages.ts";
import { openPostgresSocket } from "../../postgres/database/postgres-socket.ts";
import { MessageEncoder } from "../../postgres/database/protocol-messages.ts";
import { useDatabase } from "../database.ts";
import { useFixture } from "../fixture.ts";
import { until } from "../until.ts";
import { socketAddressOf, startRouter } from "./router.ts";

let client: pg.Client;
let url: string;
const database = useDatabase({ template: "empty" });
const router = useFixture(() => startRouter("hostile", socketAddressOf(database.ownerUrl)));
beforeAll(async () => {
  url = `postgresql://postgres@127.0.0.1:${router.port}/${database.name}`;
});
beforeEach(async () => {
  client = new pg.Client({ connectionString: url });
  await client.connect();
  return () => client.end();
});

const pidOf = async () => (await client.query<{ pid: number }>("select pg_backend_pid() as pid")).rows[0]!.pid;

describe("the hostile router", () => {
  test("runs each statement outside of a transaction block on another backend", async () => {
    const pids = [await pidOf(), await pidOf(), await pidOf()];
    expect(pids[1]).not.toBe(pids[0]);
    expect(pids[2]).not.toBe(pids[1]);
  });

  test("gives each statement of a pipeline another backend, and answers its one Sync once", async () => {
    const socket = await openPostgresSocket({ url, applicationName: "test", connectTimeout: 0 });
    const pids: string[] = [];
    let syncs = 0;
    socket.listen(
      (type, buffer, start, end) => {
        if (type === DATA_ROW) pids.push(readRow(buffer, start, end)[0]!);
        if (type === READY_FOR_QUERY) syncs++;
      },
      () => {},
    );
    const encoder = new MessageEncoder();
    for (let n = 0; n < 3; n++) {
      encoder.parse("", "select pg_backend_pid()");
      encoder.bind("", []);
      encoder.execute();
    }
    encoder.sync();
    socket.write(encoder.take());
    await until(() => syncs > 0);
    await socket.end();
    expect(pids).toHaveLength(3);
    expect(pids[1]).not.toBe(pids[0]);
    expect(pids[2]).not.toBe(pids[1]);
    expect(syncs).toBe(1);
  });

  test("runs the statements of a transaction block on one backend", async () => {
    await client.query("begin");
    const pids = [await pidOf(), await pidOf()];
    await client.query("select set_config('search_path', 'a', true), set_config('lock_timeout', '1', true)");
    const { rows } = await client.query("select current_setting('search_path') as path");
    await client.query("commit");
    expect(pids[1]).toBe(pids[0]);
    expect(rows).toEqual([{ path: "a" }]);
  });

  test("forgets the settings of a session", async () => {
    await client.query("set search_path = lost");
    const paths = [];
    for (let n = 0; n < 5; n++) paths.push((await client.query("show search_path")).rows[0].search_path);
    expect(new Set(paths)).toEqual(new Set(['"$user", public']));
  });

  test.each([
    ["set_config twice in one statement", "select set_config('a.b', '1', true), set_config('a.c', '1', true)"],
    ["LISTEN", "listen news"],
    ["permanent replication slots", "select pg_create_logical_replication_slot('s', 'pgoutput')"],
  ])("refuses %s", async (_, text) => {
    await expect(client.query(text)).rejects.toMatchObject({ code: "0A000" });
    expect((await client.query("select 1 as one")).rows).toEqual([{ one: 1 }]);
  });

  test("refuses named statements and replication", async () => {
    await expect(client.query({ name: "one", text: "select 1" })).rejects.toMatchObject({ code: "0A000" });
    const walsender = new pg.Client({ connectionString: `${url}?replication=database` });
    await expect(walsender.connect()).rejects.toMatchObject({ code: "0A000" });
  });

  test("a refusal inside of a transaction block fails the transaction", async () => {
    await client.query("begin");
    await expect(client.query("listen news")).rejects.toMatchObject({ code: "0A000" });
    await expect(client.query("select 1")).rejects.toMatchObject({ code: "25P02" });
    expect((await client.query("commit")).command).toBe("ROLLBACK");
  });

  test("rolls back what a client leaves open", async () => {
    const other = new pg.Client({ connectionString: url });
    await other.connect();
    await other.query("create table things ()");
    await other.query("begin");
    await other.query("lock table things");
    await other.end();
    await client.query("insert into things default values");
    expect((await client.query("select * from things")).rows).toHaveLength(1);
  });

  test("cancels the client's own statement", async () => {
    const running = client.query("select pg_sleep(3600)");
    const other = new pg.Client({ connectionString: database.ownerUrl });
    await other.connect();
    await until(
      async () => (await other.query("select from pg_stat_activity where query like '%pg_sleep(3600)'")).rowCount! > 0,
    );
    await other.end();
    const expected = expect(running).rejects.toMatchObject({ code: "57014" });
    const { processID, secretKey } = client as unknown as { processID: number; secretKey: number };
    const connection = new pg.Connection() as pg.Connection & {
      connect(port: number, host: string): void;
      cancel(processId: number, secretKey: number): void;
    };
    connection.on("connect", () => connection.cancel(processID, secretKey));
    connection.connect(router.port, "127.0.0.1");
    await expected;
  });

  test("passes on large results, and values of several chunks", async () => {
    const { rows } = await client.query("select repeat('x', 1000000) as text from generate_series(1, 20)");
    expect(rows.map(({ text }) => text.length)).toEqual(Array.from({ length: 20 }, () => 1_000_000));
    const value = "y".repeat(3_000_000);
    expect((await client.query("select $1::text as value", [value])).rows).toEqual([{ value }]);
  });
});
