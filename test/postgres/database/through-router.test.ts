import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Database, openDatabase } from "../../../postgres/database/database.ts";
import { ContextError } from "../../../postgres/database/database-errors.ts";
import { useFixture } from "../../fixture.ts";
import { socketAddressOf, startRouter } from "../../routers/router.ts";
import { until } from "../../until.ts";
import { alice, anon, bob, caller, open, sql } from "./open.ts";

const SCHEMA = `
  create table notes (id int primary key, author text not null default current_setting('request.jwt.claims')::json ->> 'sub');
  alter table notes enable row level security;
  create policy own on notes using (author = current_setting('request.jwt.claims')::json ->> 'sub');
  create table seats (id int, constraint one unique (id) deferrable initially deferred);
  grant all on notes, seats to authenticated;
`;
const IDENTITY = sql(
  "select current_user || ' ' || coalesce(current_setting('request.jwt.claims')::json ->> 'sub', '')",
);

let database: Database;
const logged: object[] = [];
const opened = useFixture(() => open(SCHEMA));
const router = useFixture(() => startRouter("hostile", socketAddressOf(opened.url)));
beforeAll(async () => {
  const { pathname } = new URL(opened.url.replace("@/", "@localhost/"));
  const url = `postgresql://authenticator@127.0.0.1:${router.port}${pathname}`;
  const log = { info: (fields: object, message: string) => logged.push({ ...fields, message }), warn() {} };
  database = openDatabase({ url, ownerUrl: opened.url, log, poolSize: 8 });
});
afterAll(() => database.close());

const answer = async (...question: Parameters<Database["run"]>) => (await database.run(...question)).rows[0]?.[0];

describe("through a router that gives each statement outside of BEGIN another session", () => {
  test("the log says what was found", async () => {
    await answer(anon, IDENTITY);
    expect(logged).toContainEqual(
      expect.objectContaining({
        isExplicit: true,
        preparesStatements: false,
        message: "the database is behind a router",
      }),
    );
    expect(database.state().capabilities).toMatchObject({ isExplicit: true, isRouted: true });
  });

  test("each of many concurrent requests runs as its own caller, reads, writes and failures", async () => {
    const callers = Array.from({ length: 10 }, (_, n) => ({ name: `caller ${n}`, n }));
    await Promise.all(
      callers.map(async ({ name, n }) => {
        const context = caller("authenticated", { sub: name });
        expect(await answer(context, sql("insert into notes values ($1) returning author", String(n)))).toBe(name);
        for (let round = 0; round < 3; round++) {
          expect(await answer(context, IDENTITY, { readOnly: true })).toBe(`authenticated ${name}`);
          const failed = database.run(context, sql("select 1 / (select 0)"), { readOnly: true });
          await expect(failed).rejects.toMatchObject({ code: "22012" });
          expect(await answer(context, sql("select string_agg(author, ',') from notes"), { readOnly: true })).toBe(
            name,
          );
        }
      }),
    );
    expect(await answer(anon, IDENTITY)).toBe("anon ");
  });

  test("a write commits, and one that is rolled back or whose deferred constraint fails does not", async () => {
    await database.run(alice, sql("insert into seats values (1)"));
    await database.run(alice, sql("insert into seats values (2)"), { rollback: true });
    for (const options of [{}, { rollback: true }]) {
      const twice = database.run(alice, sql("insert into seats values (1)"), options);
      await expect(twice).rejects.toMatchObject({ code: "23505", constraint: "one" });
    }
    expect((await opened.owner.query("select id from seats")).rows).toEqual([{ id: 1 }]);
  });

  test("the statement before it is in the same transaction", async () => {
    const before = sql("select set_config('request.marked', 'yes', true)");
    expect(await answer(alice, sql("select current_setting('request.marked')"), { before })).toBe("yes");
  });

  test("a stream is read whole, and one that is left is cancelled", async () => {
    const long = sql("select repeat('x', 1000) from generate_series(1, 3000)");
    let rows = 0;
    for await (const chunk of database.stream(alice, long, { separator: "\n" })) rows += chunk.rows;
    expect(rows).toBe(3_000);
    const endless = sql("select repeat('endless', 1000), generate_series(1, 100000000)");
    for await (const _chunk of database.stream(alice, endless, { separator: "\n" })) break;
    await until(async () => {
      const { rows: left } = await opened.owner.query(
        "select from pg_stat_activity where datname = current_database() and state <> 'idle' and query like '%endless%' and pid <> pg_backend_pid()",
      );
      return left.length === 0;
    });
    expect(await answer(bob, IDENTITY)).toBe("authenticated bob");
  });

  test("a transaction keeps its caller, and is rolled back when its work fails", async () => {
    const pids = await database.transaction(alice, async (query) => {
      await query(sql("insert into notes values (100)"));
      const pid = async () => (await query(sql("select pg_backend_pid()::text"))).rows[0]![0];
      return [await pid(), await pid()];
    });
    expect(pids[0]).toBe(pids[1]);
    await expect(
      database.transaction(alice, async (query) => {
        await query(sql("insert into notes values (101)"));
        throw new Error("changed its mind");
      }),
    ).rejects.toThrow("changed its mind");
    expect((await database.run(alice, sql("select id from notes"))).rows).toEqual([["100"]]);
  });

  test("an unknown role is refused, and runs nothing as the login", async () => {
    const unknown = database.run(caller("nobody"), sql("select current_user"));
    await expect(unknown).rejects.toThrow(ContextError);
  });
});
