import jwt from "jsonwebtoken";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { SqlResponse } from "../../../operations/admin-types/index.ts";
import type { Service } from "../../../service/wiring/service.ts";
import { useClient, useDatabase } from "../../database.ts";
import { SECRET } from "../../secret.ts";
import { serve } from "../../serve.ts";
import { until } from "../../until.ts";

const SCHEMA = `
  create table public.notes (id int primary key generated always as identity, author text, body text);
  insert into public.notes (author, body) values ('ann', 'hers'), ('bob', 'his'), ('bob', 'his too');
  alter table public.notes enable row level security;
  create policy own on public.notes to authenticated using (author = auth.jwt() ->> 'sub') with check (author = auth.jwt() ->> 'sub');
  grant select, insert on public.notes to authenticated;
  create table public.numbers as select n::bigint + 9007199254740990 as id, n as small from generate_series(1, 3000) n;
`;

let service: Service;
let switchedOff: Service;

const tokenOf = (claims: object) => jwt.sign({ exp: Math.floor(Date.now() / 1000) + 600, ...claims }, SECRET);
const ADMINISTRATOR = tokenOf({ role: "admin", sub: "1" });

const database = useDatabase({ template: "platform", sql: SCHEMA });
const owner = useClient(database.ownerUrl);
beforeAll(async () => {
  const settings = { BASE_SCHEMA: "platform", STUDIO_SQL: "on" };
  [service, switchedOff] = await Promise.all([
    serve(database, settings),
    serve(database, { ...settings, STUDIO_SQL: "off" }),
  ]);
  [service, switchedOff] = await Promise.all([
    serve(database, settings),
    serve(database, { ...settings, STUDIO_SQL: "off" }),
  ]);
});
afterAll(async () => {
  await service.stop();
  await switchedOff.stop();
});

type Refusal = {
  readonly error: { readonly code: string; readonly message: string; readonly details: readonly { field: string }[] };
};

type Options = { readonly token?: string | null; readonly url?: string; readonly signal?: AbortSignal };

async function post(body: object, { token = ADMINISTRATOR, url = service.url, signal }: Options = {}) {
  const headers = { "Content-Type": "application/json", ...(token && { Authorization: `Bearer ${token}` }) };
  const init = { method: "POST", headers, body: JSON.stringify(body), signal: signal ?? null };
  const response = await fetch(`${url}/admin/v1/sql`, init);
  return { status: response.status, body: (await response.json()) as unknown };
}

async function refuse(body: object, options: Options = {}) {
  const response = await post(body, options);
  return { status: response.status, ...(response.body as Refusal).error };
}

/** The response to statements that are accepted. */
async function run(sql: string, options: object = {}): Promise<SqlResponse> {
  const { status, body } = await post({ sql, ...options });
  expect([status, (body as Partial<Refusal>).error?.code]).toEqual([200, undefined]);
  return body as SqlResponse;
}

const AS_BOB = { as: { role: "authenticated", claims: { sub: "bob" } } };

describe("who may run SQL", () => {
  test("only administrators may", async () => {
    const statusFor = async (token: string | null) => (await post({ sql: "select 1" }, { token })).status;
    expect(await statusFor(null)).toBe(401);
    for (const role of ["anon", "authenticated", "service_role"]) {
      expect([role, await statusFor(tokenOf({ role, sub: "1" }))]).toEqual([role, 403]);
    }
    expect(await statusFor(tokenOf({ role: "admin", sub: "1", act: { sub: "2" } }))).toBe(403);
    expect(await statusFor(ADMINISTRATOR)).toBe(200);
  });

  test("with STUDIO_SQL=false nobody may", async () => {
    const { status, code, message } = await refuse({ sql: "select 1" }, { url: switchedOff.url });
    expect([status, code, message]).toEqual([403, "PERMISSION_DENIED", "SQL is turned off."]);
    expect((await post({ sql: "select 1", ...AS_BOB }, { url: switchedOff.url })).status).toBe(403);
  });

  test("a request that cannot be read names its fields", async () => {
    const { status, details } = await refuse({ sql: " ", as: { role: 5 }, limit: 0, read_only: "no", explain: [] });
    expect(status).toBe(400);
    expect(details.map(({ field }) => field)).toEqual([...["sql", "as", "limit", "read_only", "explain"]]);
  });
});

describe("results", () => {
  test("each statement has its own, with types, and values that keep all digits", async () => {
    const { results, error, transaction } = await run(`
      create temp table prices (price numeric(30, 2), label varchar(20)) on commit drop;
      insert into prices values (12345678901234567890.10, 'a'), (null, 'b');
      select price, label, 9007199254740993 as big, true as yes from prices order by label`);
    expect({ error, transaction }).toEqual({ error: null, transaction: "committed" });
    expect(results.map(({ command, row_count }) => [command, row_count])).toEqual([
      ["CREATE TABLE", null],
      ["INSERT 0 2", 2],
      ["SELECT 2", 2],
    ]);
    expect(results[0]).toMatchObject({ columns: null, rows: [], cut: null, plan: null });
    expect(results[2]!.columns).toEqual([
      { name: "price", type: "numeric(30,2)", category: "N" },
      { name: "label", type: "character varying(20)", category: "S" },
      { name: "big", type: "bigint", category: "N" },
      { name: "yes", type: "boolean", category: "B" },
    ]);
    expect(results[2]!.rows).toEqual([
      ["12345678901234567890.10", "a", "9007199254740993", "t"],
      [null, "b", "9007199254740993", "t"],
    ]);
    expect(results[2]!.duration_ms).toBeGreaterThan(0);
  });

  test("rows beyond the limit are not sent", async () => {
    const { results } = await run("select id from numbers order by id; select 1", { limit: 250 });
    expect([results[0]!.rows.length, results[0]!.cut, results[0]!.command]).toEqual([250, "rows", null]);
    expect(results[0]!.rows.at(-1)).toEqual(["9007199254741240"]);
    expect(results[1]).toMatchObject({ rows: [["1"]], cut: null });
  });

  test("exactly as many rows as the limit are all rows", async () => {
    const { results } = await run("select * from generate_series(1, 200); select * from generate_series(1, 401)", {
      limit: 401,
    });
    expect(results.map(({ rows, cut, command }) => [rows.length, cut, command])).toEqual([
      [200, null, "SELECT 200"],
      [401, null, "SELECT 401"],
    ]);
  });

  test("a result of a million rows, or with a value of 100 MB, does not take the memory", async () => {
    const before = process.memoryUsage().rss;
    const { results } = await run(
      `select repeat('x', 1000) from generate_series(1, 1000000);
       select repeat('y', 100 * 1024 * 1024);
       select 1`,
      { limit: 50_000 },
    );
    expect(results[0]!.cut).toBe("bytes");
    expect(results[0]!.rows.length).toBeGreaterThan(5_000);
    expect(results[1]).toMatchObject({ cut: "bytes", rows: [] });
    expect(process.memoryUsage().rss - before).toBeLessThan(300 * 2 ** 20);
  });

  test("a change that returns more rows than the limit is made to all rows", async () => {
    const { results } = await run(
      "update numbers set small = -1 returning id; select count(*) from numbers where small = -1",
      {
        limit: 10,
      },
    );
    expect([results[0]!.rows.length, results[0]!.cut]).toEqual([10, "rows"]);
    expect(results[1]!.rows).toEqual([["3000"]]);
  });

  test("notices come with the index of their statement, and not all of a flood", async () => {
    const body = await run(`select 1; do $$ begin for i in 1..500 loop raise warning 'no. %', i; end loop; end $$`);
    expect(body.notices[0]).toMatchObject({ statement: 1, severity: "WARNING", sqlstate: "01000", message: "no. 1" });
    expect([body.notices.length, body.dropped_notices]).toEqual([100, 400]);
  });

  test("notices are at most a hundred, however many statements there are", async () => {
    const statement = "do $$ begin for i in 1..60 loop raise warning 'no. %', i; end loop; end $$;";
    const { notices, dropped_notices: dropped } = await run(statement.repeat(3));
    expect(notices.map((notice) => notice.statement).filter((index) => index === 1).length).toBe(40);
    expect([notices.length, dropped]).toEqual([100, 80]);
  });

  test("the columns of many wide results do not take the memory", async () => {
    const columns = Array.from({ length: 1_600 }, (_, index) => `c${index} text`).join(", ");
    await run(`create table public.wide (${columns})`);
    const body = await run(`set search_path = public; ${"table wide;".repeat(1_000)}`);
    expect(body.error).toMatchObject({ sqlstate: "54000", severity: "ERROR" });
    expect(body.results.length).toBeLessThan(500);
    await run("drop table public.wide");
  });

  test("comments and empty statements have no result", async () => {
    expect((await run("-- nothing\n;;")).results).toEqual([]);
  });
});

describe("errors", () => {
  test("have the SQLSTATE, and the line and column of their position", async () => {
    const { error, results, transaction } = await run("select 'ä😀';\n\n  select '😀', athor\n  from notes");
    expect(results.length).toBe(1);
    expect(transaction).toBe("rolled back");
    expect(error).toMatchObject({ statement: 1, sqlstate: "42703", line: 3, column: 16 });
    expect(error?.message).toBe('column "athor" does not exist');
    expect(error?.hint).toBe('Perhaps you meant to reference the column "notes.author".');
  });

  test("undo the statements before them", async () => {
    const { error } = await run("insert into notes (author) values ('undone'); select 1 / 0");
    expect(error).toMatchObject({ sqlstate: "22012", statement: 1, line: null, offset: null });
    expect((await run("select from notes where author = 'undone'")).results[0]!.command).toBe("SELECT 0");
  });

  test("have the detail and the constraint", async () => {
    const { error } = await run("insert into notes overriding system value values (1)");
    expect(error).toMatchObject({
      sqlstate: "23505",
      constraint: "notes_pkey",
      detail: "Key (id)=(1) already exists.",
    });
  });

  test("of a deferred constraint come at the end, without a statement", async () => {
    const { error, results, transaction } = await run(`
      create temp table pairs (id int unique deferrable initially deferred);
      insert into pairs values (1), (1)`);
    expect([results.length, error?.sqlstate, error?.statement, transaction]).toEqual([2, "23505", null, "rolled back"]);
  });

  test("a connection that Postgres ends is reported", async () => {
    const { error } = await run("select pg_terminate_backend(pg_backend_pid())");
    expect(error?.sqlstate).toBe("57P01");
    expect((await run("select 1")).error).toBe(null);
  });
});

describe("transactions", () => {
  test.each([
    ["begin", 0],
    ["select 1; commit", 10],
    ["rollback", 0],
    ["copy notes to stdout", 0],
    ["/* so */ COPY notes FROM PROGRAM 'true'", 9],
    ["listen news", 0],
  ])("%s is refused before anything runs", async (sql, offset) => {
    const { error, results } = await run(sql);
    expect([error?.sqlstate, error?.offset, results]).toEqual(["0A000", offset, []]);
    expect(error?.hint).toMatch(/\.$/);
  });

  test("savepoints work", async () => {
    const { results, error } = await run(`
      savepoint one; insert into notes (author) values ('x'); rollback to savepoint one; release one;
      select count(*) from notes where author = 'x'`);
    expect(error).toBe(null);
    expect(results.at(-1)!.rows).toEqual([["0"]]);
  });

  test("a single statement as the owner may be one that runs outside of transactions", async () => {
    expect((await run("vacuum notes")).error).toBe(null);
    expect((await run("create index concurrently on numbers (id)")).error).toBe(null);
    expect((await run("select 1; vacuum notes")).error).toMatchObject({ sqlstate: "25001", statement: 1 });
  });

  test("read_only refuses changes, also by statements that would allow them", async () => {
    const change = "insert into notes (author) values ('x')";
    expect((await run(change, { read_only: true })).error?.sqlstate).toBe("25006");
    expect((await run(change, { read_only: true, ...AS_BOB })).error?.sqlstate).toBe("25006");
    const loosened = `set transaction read write; ${change}`;
    expect((await run(loosened, { read_only: true })).error).toMatchObject({ statement: 0 });
  });

  test("what a session leaves behind is not seen by the next", async () => {
    await run("create temp table left_behind (); set work_mem = '1MB'; select pg_advisory_lock(7)");
    const { results } = await run("select to_regclass('left_behind'), current_setting('work_mem') <> '1MB'");
    expect(results[0]!.rows).toEqual([[null, "t"]]);
    await until(async () => {
      const { rows } = await owner.query("select pg_try_advisory_lock(7) as free");
      return rows[0].free;
    });
  });
});

describe("as a role", () => {
  test("statements see what that caller sees", async () => {
    const sql =
      "select body from notes order by id; select current_user, auth.jwt() ->> 'sub', current_setting('request.interface')";
    const { results } = await run(sql, AS_BOB);
    expect(results[0]!.rows).toEqual([["his"], ["his too"]]);
    expect(results[1]!.rows).toEqual([["authenticated", "bob", "table"]]);
    expect((await run("select count(*) from notes")).results[0]!.rows).toEqual([["3"]]);
  });

  test("claims keep the digits of their numbers", async () => {
    const body = `{"sql": "select auth.jwt() ->> 'n'", "as": {"role": "authenticated", "claims": {"n": 90071992547409931}}}`;
    const response = await fetch(`${service.url}/admin/v1/sql`, {
      method: "POST",
      headers: { "Content-Type": "application/json", Authorization: `Bearer ${ADMINISTRATOR}` },
      body,
    });
    expect(((await response.json()) as SqlResponse).results[0]!.rows).toEqual([["90071992547409931"]]);
  });

  test("policies and privileges apply", async () => {
    expect((await run("insert into notes (author) values ('ann')", AS_BOB)).error?.sqlstate).toBe("42501");
    expect((await run("select * from numbers", AS_BOB)).error?.sqlstate).toBe("42501");
    expect((await run("select 1", { as: { role: "nobody here" } })).error).toMatchObject({ statement: null });
    expect((await run("select current_user", { as: { role: "anon" } })).results[0]!.rows).toEqual([["anon"]]);
  });

  test("the administrator's token is in no setting", async () => {
    const { results } = await run("select current_setting('request.headers')", AS_BOB);
    expect(results[0]!.rows).toEqual([["{}"]]);
  });
});

describe("explain", () => {
  test("gives the plan and changes nothing", async () => {
    const { results, transaction } = await run("select * from notes where id = 1", { explain: true });
    expect(transaction).toBe("rolled back");
    expect(results[0]).toMatchObject({ rows: [], plan: [{ Plan: { "Relation Name": "notes" } }] });
    expect(results[0]!.plan![0]!.Plan).not.toHaveProperty("Actual Rows");
  });

  test("with analyze it runs, and rolls back", async () => {
    const { results, error } = await run("set local work_mem = '1MB'; delete from notes", {
      explain: { analyze: true },
    });
    expect(error).toBe(null);
    expect(results[0]!.plan).toBe(null);
    expect(results[1]!.plan![0]).toMatchObject({
      Plan: { "Node Type": "ModifyTable", Plans: [{ "Actual Rows": expect.any(Number) }] },
      "Execution Time": expect.any(Number),
      Settings: { work_mem: "1MB" },
    });
    expect((await run("select count(*) from notes")).results[0]!.rows).toEqual([["3"]]);
  });

  test("an error has the position in the text that was sent", async () => {
    const { error } = await run("select\n  nme from notes", { explain: true });
    expect(error).toMatchObject({ line: 2, column: 3, offset: 9 });
  });
});

describe("limits", () => {
  test("the statement timeout applies, and a script may change it", async () => {
    const { error } = await run("set statement_timeout = '20ms'; select pg_sleep(60)");
    expect(error).toMatchObject({ sqlstate: "57014", statement: 1 });
    const { results } = await run("show statement_timeout; show lock_timeout");
    expect(results.map(({ rows }) => rows[0]![0])).toEqual(["30s", "3s"]);
  });

  test("a statement is cancelled when its client leaves", async () => {
    const countRunning = async () => {
      const { rows } = await owner.query("select from pg_stat_activity where query = 'select pg_sleep(600)'");
      return rows.length;
    };
    const leaving = new AbortController();
    const left = post({ sql: "select pg_sleep(600)" }, { signal: leaving.signal }).catch((error) => error.name);
    await until(async () => (await countRunning()) === 1);
    leaving.abort();
    expect(await left).toBe("AbortError");
    await until(async () => (await countRunning()) === 0);
  });

  test("more than four at once are refused", async () => {
    const leaving = new AbortController();
    const sleep = async (): Promise<void> => {
      // The request of the test before may not have ended.
      const { status } = await post({ sql: "select pg_sleep(601)" }, { signal: leaving.signal });
      if (status === 503) await sleep();
    };
    const sleeping = Array.from({ length: 4 }, () => sleep().catch(() => {}));
    await until(async () => {
      const { rows } = await owner.query("select from pg_stat_activity where query = 'select pg_sleep(601)'");
      return rows.length === 4;
    });
    expect((await post({ sql: "select 1" })).status).toBe(503);
    leaving.abort();
    await Promise.all(sleeping);
    await until(async () => (await post({ sql: "select 1" })).status === 200);
  });
});

describe("the audit log", () => {
  const entries = async (text: string) => {
    const { rows } = await owner.query(
      `select event, user_id::text, details - 'user_agent' as details from auth.audit_log
       where request_id in (select request_id from auth.audit_log where details ->> 'sql' like $1) order by id`,
      [text],
    );
    return rows;
  };

  test("says who ran what, as whom, and how it ended", async () => {
    await run("select 'first entry'", AS_BOB);
    expect(await entries("%first entry%")).toEqual([
      {
        event: "studio.sql_started",
        user_id: "1",
        details: { as: "authenticated", sql: "select 'first entry'", read_only: false, explain: false },
      },
      {
        event: "studio.sql_ended",
        user_id: "1",
        details: { as: "authenticated", duration_ms: expect.any(Number), outcome: "committed" },
      },
    ]);
    await run("select 'second entry' / 0");
    expect((await entries("%second entry%")).at(-1).details).toMatchObject({
      as: "owner",
      outcome: "rolled back",
      sqlstate: "22P02",
    });
  });

  test("has no passwords, and only the beginning of a long text", async () => {
    await run("select 'third entry'; create role third_entry password 'hunter2'; drop role third_entry");
    const [{ details }] = await entries("%third entry%");
    expect(details.sql).toContain("create role third_entry password …");
    expect(details.sql).not.toContain("hunter2");
    await run(`select 'fourth entry' -- ${"x".repeat(5_000)}\n, 2`);
    const [{ details: long }] = await entries("%fourth entry%");
    expect(long.sql.length).toBe(1_000);
  });

  test("has texts whose characters the limit of length divides", async () => {
    await run(`select 'fifth entry', '${"🙂".repeat(1_000)}'`);
    await run(`select  'fifth entry', '${"🙂".repeat(1_000)}'`);
    const starts = (await entries("%fifth entry%")).filter(({ event }) => event === "studio.sql_started");
    expect(starts.map(({ details }) => details.sql.length)).toEqual([1_000, 1_000]);
  });
});
