import { existsSync } from "node:fs";
import { beforeAll, describe, expect, test } from "vitest";
import type { Database } from "../../../postgres/database/database.ts";
import { useFixture } from "../../fixture.ts";
import { PGBOUNCER, startPgBouncer } from "../../routers/pgbouncer.ts";
import { socketAddressOf } from "../../routers/router.ts";
import { serverBinaries } from "../../server-binaries.ts";
import { alice, anon, caller, commonOptions, open, PID, sql } from "./open.ts";

const { major } = await serverBinaries();

const SCHEMA = `
  create function leak(name text, value text) returns void language plpgsql
    as $$ begin perform set_config(name, value, false); end $$;
  create function prepared() returns bigint language sql as 'select count(*) from pg_prepared_statements';
  create function deallocate_all() returns void language plpgsql as $$ begin execute 'deallocate all'; end $$;
  create table things (id int primary key, name text);
  grant all on things to anon, authenticated;
`;

let database: Database;
// Each pool has one connection, so that every test meets the sessions that the others have used.
const opened = useFixture(() => open(SCHEMA, { poolSize: 1 }));
beforeAll(async () => {
  database = opened.database;
});

const isExplicit = commonOptions.current.transactionMode === "explicit";
const answer = async (...question: Parameters<Database["run"]>) => (await database.run(...question)).rows[0]?.[0];
const pid = () => answer(anon, PID);
const setting = (name: string) => answer(anon, sql("select current_setting($1, true)", name));

/** Runs it until it is trusted to share its connection. */
async function trust(statement: ReturnType<typeof sql>, context = anon): Promise<void> {
  for (let isTrusted = false; !isTrusted; ) {
    const running = database.run(context, statement, { pool: "read" });
    isTrusted = database.state().pools.read.inFlight > 0;
    await running.catch(() => {});
    // The start of a session is slow: a statement that ends sessions would not be trusted on a slow machine.
    await database.run(context, PID, { pool: "read" });
  }
}

describe("a session between two requests", () => {
  test("keeps no session settings of a function: role, claims, limits, or a custom setting", async () => {
    const before = await pid();
    for (const [name, value] of [
      ["role", "service_role"],
      ["request.jwt.claims", '{"sub":"leak"}'],
      ["statement_timeout", "1"],
      ["app.tenant", "leak"],
      ["work_mem", "1MB"],
    ]) {
      await database.run(caller("service_role"), sql("select leak($1, $2)", name!, value!));
      expect(await setting(name!)).not.toBe(value);
    }
    expect(await answer(anon, sql("select current_user"))).toBe("anon");
    expect(await pid()).toBe(before);
  });

  test("keeps none if the next request fails", async () => {
    await database.run(anon, sql("select leak('app.tenant', 'leak')"));
    await expect(database.run(anon, sql("select 1/0"))).rejects.toMatchObject({ code: "22012" });
    expect(await setting("app.tenant")).not.toBe("leak");
  });

  test("keeps no search_path", async () => {
    await database.run(anon, sql("select leak('search_path', 'pg_catalog')"));
    expect(await setting("search_path")).not.toContain("pg_catalog");
  });

  test.each<[name: string, value: string]>([
    ["TimeZone", "Asia/Kolkata"],
    ["DateStyle", "German"],
    ["client_encoding", "LATIN1"],
    ["default_transaction_read_only", "on"],
    // Postgres reports it since 18.
    ...(major >= 18 ? [["search_path", "pg_catalog"] satisfies [string, string]] : []),
  ])("is closed when %s was changed for the session", async (name, value) => {
    const before = await pid();
    await database.run(anon, sql("select leak($1, $2)", name, value));
    expect(await setting(name)).not.toContain(value);
    expect(await pid()).not.toBe(before);
    await database.run(anon, sql("insert into things values (1) on conflict do nothing"));
  });

  // An explicit transaction ends with its own COMMIT.
  test.skipIf(isExplicit)(
    "is closed when a statement has left a transaction open, and no other request runs inside it",
    async () => {
      const read = () => answer(anon, PID, { readOnly: true });
      let before: unknown;
      let results: PromiseSettledResult<unknown>[] = [];
      // A statement that was slow once has a connection to itself again, and the others do not meet it.
      for (let areTogether = false; !areTogether; ) {
        await trust(sql("begin"));
        await trust(PID);
        before = await read();
        const running = [database.run(anon, sql("begin"), { pool: "read" }), read(), read()];
        areTogether = database.state().pools.read.inFlight === running.length;
        results = await Promise.allSettled(running);
      }
      const [opening, ...behind] = results;
      expect(opening).toMatchObject({ status: "rejected", reason: { code: "25000" } });
      for (const result of behind)
        expect(result).toMatchObject({ status: "fulfilled", value: expect.not.stringMatching(before as string) });
    },
  );

  test("is closed when a statement is COPY", async () => {
    await expect(database.run(anon, sql("copy things from stdin"))).rejects.toMatchObject({ kind: "unavailable" });
    expect(await answer(anon, sql("select 'well'"))).toBe("well");
  });
});

describe("prepared statements", () => {
  const count = async () => Number(await answer(anon, sql("select prepared()")));

  test("are parsed once for each role", async () => {
    const statement = sql("select name from things where id = $1", "1");
    const before = await count();
    for (const context of [anon, alice, anon, alice, anon]) await database.run(context, statement);
    expect(await count()).toBe(before + 2);
  });

  test("have a maximum number, and the server deallocates the others", async () => {
    for (let index = 0; index < 300; index++) await database.run(anon, sql(`select ${index}`));
    // An evicted statement is closed along with the next request.
    expect(await count()).toBeLessThanOrEqual(255);
    expect(await count()).toBeGreaterThan(200);
    expect(database.state().pools.write.preparedStatements).toBeLessThanOrEqual(250);
  });

  test("whose columns have changed are parsed again, for reads and for writes", async () => {
    await opened.owner.query("create table changing as select 1 as a; grant all on changing to anon");
    const read = sql("select * from changing");
    const write = sql("insert into changing (a) values (2) returning *");
    await database.run(anon, read);
    await database.run(anon, write, { fields: true });
    await opened.owner.query("alter table changing add b text default 'new'");
    expect((await database.run(anon, read)).rows).toEqual([
      ["1", "new"],
      ["2", "new"],
    ]);
    const written = await database.run(anon, write, { fields: true });
    expect(written.rows).toEqual([["2", "new"]]);
    expect(written.fields).toEqual([
      { name: "a", type: 23, modifier: -1 },
      { name: "b", type: 25, modifier: -1 },
    ]);
    expect((await opened.owner.query("select * from changing")).rowCount).toBe(3);
  });

  test("that the session has lost are parsed again", async () => {
    const before = await pid();
    await database.run(anon, sql("select deallocate_all()"));
    expect(await pid()).toBe(before);
  });

  test("can all be deallocated at once, after which the server has closed them", async () => {
    for (let index = 0; index < 20; index++) await database.run(anon, sql(`select ${index}, 'forget'`));
    database.forgetStatements();
    expect(await count()).toBeLessThan(10);
  });

  test("whose Parse the server skipped do not fail the requests that use them", async () => {
    const statement = sql("select name from things where id = $1", "1");
    const context = caller("authenticated", { sub: "relies" });
    await trust(statement, context);
    database.forgetStatements();
    // The first one parses it, but its own setting is refused before that; the others only bind.
    const broken = { ...context, settings: [["statement_timeout", "nonsense"]] as const };
    const results = await Promise.allSettled([
      database.run(broken, statement, { readOnly: true }),
      ...Array.from({ length: 3 }, () => database.run(context, statement, { readOnly: true })),
    ]);
    expect(results.map(({ status }) => status)).toEqual(["rejected", "fulfilled", "fulfilled", "fulfilled"]);
    expect(results[0]).toMatchObject({ reason: { code: "22023" } });
  });

  test("whose Parse fails return the actual error to all requests that use them", async () => {
    await opened.owner.query("create table passing (id int); grant all on passing to anon");
    const statement = sql("select id from passing");
    await trust(statement);
    await opened.owner.query("drop table passing");
    database.forgetStatements();
    const requests = Array.from({ length: 4 }, () => database.run(anon, statement, { readOnly: true }));
    for (const result of await Promise.allSettled(requests)) {
      expect(result).toMatchObject({ status: "rejected", reason: { code: "42P01" } });
    }
    // Nothing is broken for good.
    await opened.owner.query("create table passing (id int); grant all on passing to anon");
    expect(await answer(anon, statement, { readOnly: true })).toBeUndefined();
  });

  test("can be disabled, for a pooler that does not support them", async () => {
    await using plain = await open(SCHEMA, { preparedStatements: false });
    for (const _ of [1, 2]) {
      const { rows, fields } = await plain.database.run(anon, sql("select prepared(), $1 as x", "x"), { fields: true });
      expect(rows).toEqual([["0", "x"]]);
      expect(fields).toHaveLength(2);
    }
    await plain.database.run(alice, sql("insert into things values (1)"), { rollback: true });
  });
});

describe("concurrent requests on one connection", () => {
  test("fail separately", async () => {
    const division = (by: number) => sql("select 12 / $1::int", String(by));
    const divide = (by: number) => database.run(anon, division(by), { readOnly: true });
    await trust(division(1));
    const lostConnections = () => database.state().pools.read.counters.lost;
    const before = lostConnections();
    const results = await Promise.allSettled([3, 0, 4, 0, 6].map(divide));
    expect(
      results.map((result) => (result.status === "fulfilled" ? result.value.rows[0]![0] : result.reason.code)),
    ).toEqual(["4", "22012", "3", "22012", "2"]);
    expect(lostConnections()).toBe(before);
  });
});

describe.runIf(existsSync(PGBOUNCER))("a session of PgBouncer", () => {
  test("is used again, although PgBouncer reports another application_name for each transaction", async () => {
    const { pathname } = new URL(opened.url.replace("@/", "@localhost/"));
    const router = await startPgBouncer(socketAddressOf(opened.url));
    await using other = await open("", { url: `postgresql://authenticator@127.0.0.1:${router.port}${pathname}` });
    // Statements of strangers that take long, as on a busy machine, would be interrupted and so counted twice.
    for (let round = 0; round < 10; round++) await other.database.run(alice, sql("select 1"), { pool: "write" });
    expect(other.database.state().pools.write.counters).toMatchObject({ batches: 10, opened: 1 });
    await other.database.close();
    await router.close();
  });
});
