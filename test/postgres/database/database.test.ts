import pg from "pg";
import { beforeAll, describe, expect, test } from "vitest";
import type { Database } from "../../../postgres/database/database.ts";
import { ContextError } from "../../../postgres/database/database-errors.ts";
import { useFixture } from "../../fixture.ts";
import { alice, anon, bob, caller, open, PID, sql } from "./open.ts";

const SCHEMA = `
  create function caller() returns text stable language sql
    as $$ select nullif(current_setting('request.jwt.claims', true), '')::json ->> 'sub' $$;
  create table notes (id int primary key, owner text not null default caller(), body text);
  alter table notes enable row level security;
  create policy own on notes using (owner = (select caller()));
  create policy all_for_service on notes to service_role using (true);
  grant all on notes to anon, authenticated, service_role;
  insert into notes values (1, 'alice', 'hers'), (2, 'bob', 'his'), (3, 'bob', 'his too');

  create table seats (id int constraint seats_taken unique deferrable initially deferred, constraint positive check (id > 0));
  grant all on seats to authenticated;

  create schema hidden;
  create table hidden.secrets as select 'secret' as word;
  grant select on hidden.secrets to public;
  grant usage on schema hidden to authenticated;
`;

let database: Database;
const opened = useFixture(() => open(SCHEMA));
beforeAll(async () => {
  database = opened.database;
});

const rowsOf = async (...question: Parameters<Database["run"]>) => (await database.run(...question)).rows;
const pidOf = async () => (await rowsOf(anon, PID))[0]![0];

describe("a query in one round trip", () => {
  test("runs as the caller, with the caller's settings, and leaves none of them on the connection", async () => {
    const who = sql("select current_user, session_user, current_setting('request.jwt.claims', true)");
    expect(await rowsOf(alice, who)).toEqual([
      ["authenticated", "authenticator", '{"role":"authenticated","sub":"alice"}'],
    ]);
    expect(await rowsOf({ role: "anon", settings: [] }, who)).toEqual([["anon", "authenticator", ""]]);
  });

  test("may have more settings than a function has arguments", async () => {
    const settings = Array.from({ length: 250 }, (_, index) => [`app.settings.n${index}`, String(index)] as const);
    const read = sql("select current_setting('app.settings.n0') || current_setting('app.settings.n249')");
    expect(await rowsOf({ ...alice, settings }, read)).toEqual([["0249"]]);
  });

  test("many callers at once get their own rows, in every pool", async () => {
    const questions = Array.from({ length: 600 }, (_, index) => {
      const name = `caller ${index}`;
      const context = caller(index % 2 ? "anon" : "authenticated", { sub: name });
      const readOnly = index % 3 > 0;
      return database
        .run(context, sql("select caller(), current_user, $1", name), { readOnly })
        .then(({ rows }) => expect(rows).toEqual([[name, context.role, name]]));
    });
    await Promise.all(questions);
  });

  test("runs the pre-request in the same transaction, as the caller, and returns the statement's rows only", async () => {
    const before = sql("select set_config('note.left', current_user || ' was here', true), 1, 2");
    const left = sql("select current_setting('note.left', true)");
    for (const rollback of [false, true]) {
      expect(await rowsOf(alice, left, { before, rollback })).toEqual([["authenticated was here"]]);
    }
    expect(await rowsOf(alice, left)).toEqual([[""]]);
    const refusing = sql("select 1 / 0");
    await expect(database.run(alice, left, { before: refusing })).rejects.toMatchObject({ code: "22012" });
  });

  test("returns values in Postgres's text format, and the number of rows", async () => {
    const all = sql("select 1.50::numeric, true, null, '{1,2}'::int[], $1, $2::json", "ß€😀", Buffer.from('{"a": 1}'));
    expect(await rowsOf(anon, all)).toEqual([["1.50", "t", null, "{1,2}", "ß€😀", '{"a": 1}']]);
    const written = await database.run(alice, sql("update notes set body = body returning id"));
    expect(written).toEqual({ rows: [["1"]], rowCount: 1, fields: null });
    expect(await database.run(anon, sql(""))).toEqual({ rows: [], rowCount: 0, fields: null });
  });

  test("uses ISO dates and UTF-8 with any settings of the database, in its time zone", async () => {
    await using german = await open();
    await german.owner.query(`
      do $$ begin
        execute format('alter database %I set datestyle = german', current_database());
        execute format('alter database %I set intervalstyle = iso_8601', current_database());
        execute format('alter database %I set timezone = %L', current_database(), 'Asia/Kolkata');
      end $$`);
    const { rows } = await german.database.run(
      anon,
      sql("select '2026-11-20 12:00Z'::timestamptz, '1 day 2 hours'::interval, current_setting('client_encoding')"),
    );
    expect(rows).toEqual([["2026-11-20 17:30:00+05:30", "1 day 02:00:00", "UTF8"]]);
  });

  test("applies row-level security by the role and the claims of each request", async () => {
    const notes = sql("select id from notes order by id");
    const request = [alice, bob, anon, caller("service_role"), bob, alice];
    const seen = [];
    for (const context of request) seen.push((await rowsOf(context, notes)).flat().join());
    expect(seen).toEqual(["1", "2,3", "", "1,2,3", "2,3", "1"]);
  });

  test("with a statement prepared for one role requires USAGE on the schema for another", async () => {
    const secret = sql("select word from hidden.secrets");
    const pid = await pidOf();
    expect(await rowsOf(alice, secret)).toEqual([["secret"]]);
    // anon may read the table but not enter the schema, and Postgres checks that at Parse only.
    await expect(database.run(anon, secret)).rejects.toMatchObject({ code: "42501" });
    expect(await rowsOf(alice, secret)).toEqual([["secret"]]);
    expect(await pidOf()).toBe(pid);
  });
});

describe("an error of Postgres", () => {
  test("is a DatabaseError with its code, constraint and table, and the connection stays usable", async () => {
    const pid = await pidOf();
    const refused = database.run(alice, sql("insert into notes values (1)"));
    await expect(refused).rejects.toBeInstanceOf(pg.DatabaseError);
    await expect(refused).rejects.toMatchObject({ code: "23505", constraint: "notes_pkey", table: "notes" });
    await expect(refused).rejects.not.toBeInstanceOf(ContextError);
    expect(await pidOf()).toBe(pid);
  });

  test("rolls back the whole transaction", async () => {
    const half = sql("with new as (insert into notes values (50) returning id) select 1 / (id - 50) from new");
    await expect(database.run(alice, half)).rejects.toMatchObject({ code: "22012" });
    expect(await rowsOf(alice, sql("select id from notes where id = 50"))).toEqual([]);
  });

  test("a deferred constraint that fails after the row was returned is an error", async () => {
    const twice = sql("insert into seats values (7), (7) returning id");
    await expect(database.run(alice, twice)).rejects.toMatchObject({ code: "23505", constraint: "seats_taken" });
    expect(await rowsOf(alice, sql("select * from seats where id = 7"))).toEqual([]);
  });

  test("an unknown role, one that was not granted, and the login role itself are refused as such", async () => {
    const pid = await pidOf();
    for (const [role, code] of [
      ["nobody", "22023"],
      ["postgres", "42501"],
      ["none", "22023"],
      ["", "22023"],
    ]) {
      const refused = database.run(caller(role!), sql("select current_user"));
      await expect(refused).rejects.toBeInstanceOf(ContextError);
      await expect(refused).rejects.toMatchObject({ code });
    }
    expect(await pidOf()).toBe(pid);
  });

  test("a zero byte is refused, in a value by Postgres and in a statement by us", async () => {
    await expect(database.run(anon, sql("select $1", "a\0b"))).rejects.toMatchObject({ code: "22021" });
    await expect(database.run(anon, sql("select 1\0, 2"))).rejects.toBeInstanceOf(TypeError);
  });

  test("invalid values, or too many of them, do not affect other requests", async () => {
    const pid = await pidOf();
    const number = { text: "select $1", values: [1 as unknown as string] };
    const many = { text: "select 1", values: new Array(65_536).fill("x") };
    const unset = { role: "anon", settings: [["app.x", undefined as unknown as string]] } as const;
    const results = await Promise.allSettled([
      database.run(anon, number),
      database.run(anon, many),
      database.run(unset, sql("select 1")),
      database.run(anon, sql("select 'well'")),
    ]);
    expect(results.map((result) => (result.status === "rejected" ? result.reason.name : result.value.rows))).toEqual([
      "TypeError",
      "RangeError",
      "TypeError",
      [["well"]],
    ]);
    expect(await pidOf()).toBe(pid);
  });

  test("a write in a read-only request is refused", async () => {
    const write = sql("insert into notes values (60)");
    await expect(database.run(alice, write, { readOnly: true })).rejects.toMatchObject({ code: "25006" });
    await database.run(alice, write, { rollback: true });
  });
});

describe("the statement timeout", () => {
  const nap = (seconds: number) => sql(`select pg_sleep(${seconds})::text`);
  const patient = { role: "anon", settings: [["statement_timeout", "10s"]] } as const;
  const hasty = { role: "anon", settings: [["statement_timeout", "30ms"]] } as const;
  const TIMEOUT = { code: "57014" };

  test("is the database's, unless the role has its own, unless the call has its own", async () => {
    await using strict = await open("", { statementTimeout: 100 });
    const { run } = { run: strict.database.run.bind(strict.database) };
    await expect(run(anon, nap(10))).rejects.toMatchObject(TIMEOUT);
    await expect(run(hasty, nap(0.08))).rejects.toMatchObject(TIMEOUT);
    await run(patient, nap(0.2));
    await expect(run(patient, nap(10), { timeoutMs: 50 })).rejects.toMatchObject(TIMEOUT);
    await run(hasty, nap(0.2), { timeoutMs: 0 });
    // The setting ends with the request.
    expect((await run(anon, sql("select current_setting('statement_timeout')"))).rows).toEqual([["100ms"]]);
  });

  test("is shorter for anonymous callers, unless their role has its own, in each kind of query", async () => {
    await using strict = await open("", { statementTimeout: 0, anonymous: { role: "anon", statementTimeout: 100 } });
    const { database } = strict;
    await expect(database.run(anon, nap(10))).rejects.toMatchObject(TIMEOUT);
    await expect(database.run(anon, nap(10), { readOnly: true })).rejects.toMatchObject(TIMEOUT);
    await expect(database.transaction(anon, (query) => query(nap(10)))).rejects.toMatchObject(TIMEOUT);
    await expect(database.stream(anon, nap(10), { separator: "" }).next()).rejects.toMatchObject(TIMEOUT);
    await database.run(patient, nap(0.2));
    await database.run(alice, nap(0.2));
  });
});

describe("a request that is rolled back", () => {
  const seat = (id: number) => sql("insert into seats values ($1) returning id", String(id));

  test("returns the same response as a committed one", async () => {
    expect(await rowsOf(alice, seat(10), { rollback: true })).toEqual([["10"]]);
    expect(await rowsOf(alice, sql("select * from seats where id = 10"))).toEqual([]);
  });

  test("checks deferred constraints too", async () => {
    await database.run(alice, seat(11));
    const pid = await pidOf();
    await expect(database.run(alice, seat(11), { rollback: true })).rejects.toMatchObject({
      constraint: "seats_taken",
    });
    expect(await pidOf()).toBe(pid);
  });

  test("fails like any other and leaves the connection usable", async () => {
    const pid = await pidOf();
    await expect(database.run(alice, seat(-1), { rollback: true })).rejects.toMatchObject({ constraint: "positive" });
    await expect(database.run(caller("nobody"), seat(1), { rollback: true })).rejects.toBeInstanceOf(ContextError);
    expect(await pidOf()).toBe(pid);
  });
});

describe("the columns of a result", () => {
  test("are returned on demand, the second time without a query", async () => {
    const statement = sql("select id, body as text from notes where false");
    const fields = [
      { name: "id", type: 23, modifier: -1 },
      { name: "text", type: 25, modifier: -1 },
    ];
    for (const _ of [1, 2]) expect((await database.run(alice, statement, { fields: true })).fields).toEqual(fields);
    expect((await database.run(alice, statement)).fields).toBeNull();
  });

  test("are empty if the statement returns no rows", async () => {
    const { fields } = await database.run(alice, sql("delete from notes where false"), { fields: true });
    expect(fields).toEqual([]);
  });

  test("are shared by all requests that wait on the same connection", async () => {
    const statement = sql("select id from notes limit 0");
    const results = await Promise.all(
      Array.from({ length: 40 }, () => database.run(alice, statement, { fields: true, pool: "read" })),
    );
    for (const { fields } of results) expect(fields).toEqual([{ name: "id", type: 23, modifier: -1 }]);
  });
});

describe("large values", () => {
  const repeated = (length: number) => sql("select repeat('ß', $1::int), 'small'", String(length / 2));

  test.each([1_000, 60_000, 3_000_000])("of %i bytes arrive whole", async (length) => {
    const [[value, small]] = (await rowsOf(anon, repeated(length))) as [[string, string]];
    expect(value).toBe("ß".repeat(length / 2));
    expect(small).toBe("small");
  });

  test("are Buffers if requested, small ones are strings", async () => {
    for (const length of [40_000, 3_000_000]) {
      const { rows } = await database.run(anon, repeated(length), { largeValues: "buffer" });
      const [value, small] = rows[0]!;
      expect(Buffer.isBuffer(value) && value.equals(Buffer.from("ß".repeat(length / 2)))).toBe(true);
      expect(small).toBe("small");
    }
  });

  test("can be sent", async () => {
    const body = Buffer.alloc(3_000_000, "a");
    expect(await rowsOf(anon, sql("select length($1), md5($2)", body, "b".repeat(200_000)))).toEqual([
      ["3000000", (await opened.owner.query("select md5(repeat('b', 200000))")).rows[0].md5],
    ]);
  });

  test("never contain another request's bytes, however the responses interleave", async () => {
    const ask = async (index: number) => {
      const letter = String.fromCharCode(97 + (index % 26));
      const length = (index * 7_919) % 90_000;
      const statement = sql("select repeat($1, $2::int) as a, repeat($1, $2::int) as b", letter, String(length));
      const { rows } = await database.run(anon, statement, { pool: "read", readOnly: true, largeValues: "buffer" });
      const expected = letter.repeat(length);
      // It is compared after everything else has been read.
      return () => rows[0]!.every((value) => String(value) === expected);
    };
    const checks = await Promise.all(Array.from({ length: 400 }, (_, index) => ask(index)));
    expect(checks.every((check) => check())).toBe(true);
  });
});

describe("closing", () => {
  test("waits for running statements and refuses later ones", async () => {
    const own = await open();
    const running = own.database.run(anon, sql("select pg_sleep(0.2)::text, 'done'"));
    await new Promise((resolve) => setTimeout(resolve, 50));
    const closing = own.database.close();
    await expect(own.database.run(anon, sql("select 1"))).rejects.toMatchObject({
      kind: "unavailable",
      retryAfterSeconds: 1,
    });
    expect((await running).rows).toEqual([["", "done"]]);
    await closing;
    await own.database.close();
    const { rows } = await own.owner.query(
      "select count(*)::int from pg_stat_activity where usename = 'authenticator' and datname = current_database()",
    );
    expect(rows).toEqual([{ count: 0 }]);
    await own.owner.end();
  });
});
