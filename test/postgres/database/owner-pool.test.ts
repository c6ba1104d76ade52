import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { OwnerPool } from "../../../postgres/database/owner-pool.ts";
import { useDatabase } from "../../database.ts";
import { useFixture } from "../../fixture.ts";

const database = useDatabase({ template: "empty" });
const pool = useFixture(() => new OwnerPool({ url: database.ownerUrl, applicationName: "owner", acquireTimeout: 300 }));

const pidOf = () => pool.lend(async (client) => (await client.query("select pg_backend_pid() as pid")).rows[0].pid);

describe("the owner's connections", () => {
  test("are borrowed and returned", async () => {
    expect(await pool.lend(async (client) => (await client.query("select current_user as me")).rows)).toEqual([
      { me: "postgres" },
    ]);
    expect(await pidOf()).toBe(await pidOf());
  });

  test("are returned also if the work fails, with its error", async () => {
    const before = await pidOf();
    await expect(pool.lend((client) => client.query("select 1/0"))).rejects.toMatchObject({ code: "22012" });
    expect(await pidOf()).toBe(before);
  });

  test("find nothing but Postgres's own objects on their search path", async () => {
    const { rows } = await pool.lend((client) => client.query("show search_path"));
    expect(rows).toEqual([{ search_path: "pg_catalog, pg_temp" }]);
  });

  test("are not returned with an open transaction", async () => {
    const before = await pidOf();
    await pool.lend(async (client) => {
      await client.query("begin");
      await client.query("create table public.left_open ()");
    });
    expect(await pidOf()).not.toBe(before);
    await expect(pool.lend((client) => client.query("table public.left_open"))).rejects.toMatchObject({
      code: "42P01",
    });
  });

  test("that are lost during work leave the outcome unknown, and idle ones are replaced silently", async () => {
    const suicide = pool.lend((client) => client.query("select pg_terminate_backend(pg_backend_pid()), pg_sleep(5)"));
    await expect(suicide).rejects.toMatchObject({ kind: "unavailable" });
    const other = new OwnerPool({ url: database.ownerUrl, applicationName: "other", acquireTimeout: 300 });
    const pid = await pidOf();
    await other.lend((client) => client.query("select pg_terminate_backend($1)", [pid]));
    await other.close();
    await sleep(50);
    expect(await pidOf()).not.toBe(pid);
  });

  test("that end while they connect affect no caller, and are replaced", async () => {
    // AuthenticationOk, ReadyForQuery and a FATAL error, in one write.
    const farewell = Buffer.from("SFATAL\0C57P01\0Mterminating connection\0\0");
    const words = Buffer.concat([
      Buffer.from("R\0\0\0\b\0\0\0\0Z\0\0\0\x05IE\0\0\0"),
      Buffer.of(farewell.length + 4),
      farewell,
    ]);
    const real = new URL(database.ownerUrl.replace("@/", "@localhost/")).searchParams;
    let connections = 0;
    const server = createServer((socket) => {
      socket.on("error", () => {});
      if (++connections <= 2) socket.once("data", () => socket.end(words));
      else socket.pipe(connect(`${real.get("host")}/.s.PGSQL.${real.get("port")}`)).pipe(socket);
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const url = `postgresql://postgres@127.0.0.1:${port}/${database.name}`;
    const other = new OwnerPool({ url, applicationName: "other", acquireTimeout: 3_000 });
    expect(await other.lend(async (client) => (await client.query("select 1 as one")).rows)).toEqual([{ one: 1 }]);
    expect(connections).toBe(3);
    await other.close();
    server.close();
  });

  test("are limited, and waiting too long for one is a timeout", async () => {
    const hold = Promise.withResolvers<void>();
    const held = Array.from({ length: 4 }, () => pool.lend(() => hold.promise));
    await expect(pool.lend(async () => {})).rejects.toMatchObject({ kind: "timeout", code: "PGRST003" });
    hold.resolve();
    await Promise.all(held);
  });

  test("that fail to connect are retried until the timeout", async () => {
    const nowhere = new OwnerPool({
      url: "postgresql://postgres@127.0.0.1:1/nowhere",
      applicationName: "owner",
      acquireTimeout: 200,
    });
    const start = performance.now();
    await expect(nowhere.lend(async () => {})).rejects.toMatchObject({
      kind: "unavailable",
      code: "PGRST000",
      retryAfterSeconds: 1,
    });
    expect(performance.now() - start).toBeGreaterThan(50);
    await nowhere.close();
  });

  test("that are closed are not waited for", async () => {
    const closed = new OwnerPool({ url: database.ownerUrl, applicationName: "closed", acquireTimeout: 1_000_000 });
    await closed.close();
    const refused = closed.lend((client) => client.query("select 1"));
    await expect(refused).rejects.toMatchObject({ kind: "unavailable", cause: { message: "The pool is closed." } });
  });

  test("that fail to connect are retried by one caller for all", async () => {
    let connections = 0;
    const server = createServer((socket) => {
      connections++;
      socket.destroy();
    });
    await once(server.listen(0, "127.0.0.1"), "listening");
    const { port } = server.address() as AddressInfo;
    const url = `postgresql://postgres@127.0.0.1:${port}/nowhere`;
    const refused = new OwnerPool({ url, applicationName: "owner", acquireTimeout: 1_000 });
    const callers = 30;
    const results = await Promise.allSettled(Array.from({ length: callers }, () => refused.lend(async () => {})));
    expect(results.every(({ status }) => status === "rejected")).toBe(true);
    // One attempt of each before any has failed, and one after each pause, which are 100 ms in the end.
    expect(connections).toBeLessThan(callers + 20);
    await refused.close();
    server.close();
    await once(server, "close");
  });
});
