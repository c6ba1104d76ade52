import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { useFixture } from "../../fixture.ts";
import { until } from "../../until.ts";
import { openOperatedService } from "./operated-service.ts";

const SCHEMA = `
  create table notes (id bigint primary key, owner_id bigint, note text not null);
  alter table notes enable row level security;
  create policy own_notes on notes for select to authenticated using (owner_id = (select auth.uid()));
  create policy kept_notes on notes as restrictive for select to authenticated using (note <> 'secret');
  grant select, insert on notes to authenticated;
  create table locked (id bigint primary key);
  create view broken as select 1 / (id - id) as ratio from notes;
  grant select on broken to authenticated;
  create function add_note() returns int language sql volatile as $$ insert into notes values (77, 1, 'x') returning 1 $$;
  grant execute on function add_note to authenticated;
  create view writing as select add_note() as added;
  grant select on writing to authenticated;
  create view endless as select pg_sleep(9) is null as slept from generate_series(1, 9);
  grant select on endless to anon;
  grant all on notes to service_role`;

const operated = useFixture(() => openOperatedService({ STUDIO: "administrators" }));
beforeAll(async () => {
  await operated.owner.query(SCHEMA);
  await operated.owner.query(
    "insert into notes values (1, $1, 'mine'), (2, $1, 'secret'), (3, 999, 'theirs'), (4, null, 'nobody''s')",
    [operated.userId],
  );
  await until(async () => (await why({ path: "notes", as: { role: "admin" } })).body.refusal === null);
});

type WhyBody = {
  readonly rows: readonly {
    readonly is_allowed: boolean;
    readonly checks: readonly { readonly command: string; readonly on: string; readonly passes: boolean }[];
    readonly returned: object | null;
  }[];
};

const why = (body: object) => operated.send("/admin/v1/why", { token: operated.tokens.admin, body });
const policies = (query: string) => operated.send(`/admin/v1/policies?${query}`, { token: operated.tokens.admin });

describe("POST /admin/v1/why", () => {
  test("says which rows of a request a user does not see, and which policies hide them, in words", async () => {
    const { status, body } = await why({ path: "/rest/v1/notes?order=id", as: { user: operated.userId } });
    expect(status).toBe(200);
    expect(body).toMatchObject({
      role: "authenticated",
      user: operated.userId,
      interface: "table",
      refusal: null,
      table: { schema: "public", name: "notes", row_security: "enabled", bypasses_policies: false },
      visible: 1,
      total: 4,
      is_partial: false,
      hidden: [
        {
          key: { id: "2" },
          policies: [
            { name: "kept_notes", passes: false },
            { name: "own_notes", passes: true },
          ],
        },
        {
          key: { id: "3" },
          policies: [
            { name: "kept_notes", passes: true },
            { name: "own_notes", passes: false },
          ],
        },
        {
          key: { id: "4" },
          policies: [
            { name: "kept_notes", passes: true },
            { name: "own_notes", passes: null },
          ],
        },
      ],
    });
    expect(body.policies.map(({ words }: { words: string }) => words)).toEqual([
      'authenticated may only select rows where note is not "secret"',
      "authenticated may select rows where owner_id is the caller's id",
    ]);
    expect(body.plan).toContain("Scan");
  });

  test("explains one row, and paths of the other REST interface", async () => {
    const as = { role: "authenticated", claims: { sub: operated.userId } };
    expect((await why({ path: "notes?id=eq.3", as })).body).toMatchObject({ visible: 0, total: 1 });
    expect((await why({ path: "/api/v1/notes/1", as })).body).toMatchObject({ interface: "resource", visible: 1 });
  });

  describe("of a write", () => {
    const explain = (command: string, path: string, values?: object, as: object = { role: "writer" }) =>
      why({ command, path, values, as });
    const checksOf = ({ body }: { body: WhyBody }) =>
      body.rows.map(({ is_allowed: isAllowed, checks }) => [
        isAllowed,
        ...checks.filter(({ passes }) => !passes).map(({ command, on }) => `${command} ${on}`),
      ]);
    beforeAll(async () => {
      await operated.owner.query(`
        create role writer; grant writer to authenticator; grant usage on schema public to writer;
        create table drafts (id bigint primary key, owner text default current_setting('test.owner', true), body text, locked bool not null default false);
        alter table drafts enable row level security;
        grant select, insert, update (body, locked) on drafts to writer;
        create policy reading on drafts for select to writer using (body <> 'hidden');
        create policy adding on drafts for insert to writer with check (owner = 'me' and body <> 'forbidden');
        create policy changing on drafts for update to writer using (not locked);
        insert into drafts values (1, 'me', 'open', false), (2, 'me', 'closed', true), (3, 'me', 'hidden', false);
        alter role writer set test.owner = 'me'`);
      await until(async () => (await explain("update", "drafts?id=eq.1")).body.refusal === null);
    });
    afterAll(() => operated.owner.query("drop table drafts; drop owned by writer; drop role writer"));

    test("says which policy refuses the row as it is, or as it would be", async () => {
      expect(checksOf(await explain("update", "/rest/v1/drafts?order=id", { body: "x" }))).toEqual([
        [true],
        [false, "update existing", "update new"],
        [false, "select existing"],
      ]);
      expect(checksOf(await explain("update", "drafts?id=eq.1", { locked: true }))).toEqual([[false, "update new"]]);
      expect(checksOf(await explain("update", "drafts?id=eq.1", { body: "hidden" }))).toEqual([[false, "select new"]]);
      expect(checksOf(await explain("insert", "drafts", { id: 7, owner: "me", body: "forbidden" }))).toEqual([
        [false, "insert new"],
      ]);
      const added = await explain("insert", "drafts", { id: 7, owner: "me", body: "x" });
      expect(checksOf(added)).toEqual([[true]]);
      expect(added.body.rows[0]?.returned).toMatchObject({ command: "select", passes: true });
      const unread = await explain("insert", "drafts", { id: 7, owner: "me", body: "hidden" });
      expect(checksOf(unread)).toEqual([[true]]);
      expect(unread.body.rows[0]?.returned).toEqual({
        command: "select",
        on: "new",
        passes: false,
        policies: [{ name: "reading", passes: false }],
      });
    });

    test("names the privilege that is missing, of columns too", async () => {
      const missing = async (...of: Parameters<typeof explain>) => (await explain(...of)).body.missing_grants;
      expect(await missing("update", "drafts?id=eq.1", { owner: "you" })).toEqual([
        'grant update ("owner") on "public"."drafts" to "writer";',
      ]);
      expect(await missing("delete", "drafts?id=eq.1")).toEqual(['grant delete on "public"."drafts" to "writer";']);
      expect(await missing("insert", "drafts", { body: "x" })).toEqual([]);
    });

    test("changes nothing, and is no other command", async () => {
      const { rows } = await operated.owner.query("select id::int from drafts where body <> 'x' order by id");
      expect(rows).toEqual([{ id: 1 }, { id: 2 }, { id: 3 }]);
      expect((await explain("truncate", "drafts")).status).toBe(400);
    });
  });

  test("names the grants without which a role is refused", async () => {
    const { body } = await why({ path: "notes", as: { role: "anon" } });
    expect(body.refusal).toMatchObject({ status: 401, code: "42501" });
    expect(body.missing_grants).toEqual(['grant select on "public"."notes" to "anon";']);
  });

  test("gives the cause of an error, which clients do not get", async () => {
    const { body } = await why({ path: "broken", as: { role: "authenticated" } });
    expect(body.refusal.cause ?? body.refusal.message).toContain("division by zero");
  });

  test("a role that bypasses policies is said to", async () => {
    const { body } = await why({ path: "notes", as: { role: "service_role" } });
    expect(body).toMatchObject({ visible: 4, total: 4, table: { bypasses_policies: true } });
  });

  test("compares the first rows of a large table only", async () => {
    await operated.owner.query("insert into notes select n, 999, 'many' from generate_series(100, 11000) n");
    const { body } = await why({ path: "notes", as: { user: operated.userId } });
    expect(body).toMatchObject({ visible: 1, total: 10_000, is_partial: true });
    expect(body.hidden[0].key).toEqual({ id: "2" });
    await operated.owner.query("delete from notes where note = 'many'");
  });

  test.each([
    [{ path: "notes" }, 400],
    [{ path: "notes", as: {} }, 400],
    [{ path: "notes", as: { role: "postgres" } }, 400],
    [{ path: "notes", as: { user: "0" } }, 404],
    [{ as: { role: "anon" } }, 400],
  ])("%j is refused with %i", async (body, status) => {
    expect((await why(body)).status).toBe(status);
  });

  test.each(["rpc/anything", "no_such_table", "notes?id=eq.x", "/api/v1/no-such-things"])(
    "the error of a request for %s is the answer",
    async (path) => {
      const { status, body } = await why({ path, as: { role: "authenticated" } });
      expect([status, body.refusal.status >= 400]).toEqual([200, true]);
    },
  );

  test("changes nothing", async () => {
    expect((await why({ path: "writing", as: { role: "authenticated" } })).body.refusal.code).toBe("25006");
  });
});

describe("GET /admin/v1/policies", () => {
  // biome-ignore lint/suspicious/noExplicitAny: what an answer holds is what its test says.
  const resultsOf = (body: any, command: string) =>
    body.tables[0].commands.find((each: { command: string }) => each.command === command).results;

  test("a client that leaves ends the statements", async () => {
    const controller = new AbortController();
    const headers = { Authorization: `Bearer ${operated.tokens.admin}` };
    const path = `${operated.service.url}/admin/v1/policies?table=public.endless&role=anon`;
    const request = fetch(path, { headers, signal: controller.signal }).catch(() => null);
    const sleeping = async () => {
      const { rows } = await operated.owner.query(
        "select pid from pg_stat_activity where state = 'active' and wait_event = 'PgSleep' and datname = current_database()",
      );
      return rows.length;
    };
    await until(async () => (await sleeping()) > 0);
    controller.abort();
    await request;
    await expect.poll(async () => (await sleeping()) === 0).toBe(true);
    await operated.owner.query("drop view endless");
  });

  test("tries each command as each caller, and says which policies apply and which grants are missing", async () => {
    const { status, body } = await policies(`table=public.notes&role=anon&role=authenticated&user=${operated.userId}`);
    expect(status).toBe(200);
    expect(body.callers).toMatchObject([
      { role: "anon", user: null },
      { role: "authenticated", user: null },
      { role: "authenticated", user: operated.userId, name: "ada@example.org" },
    ]);
    expect(body.tables[0]).toMatchObject({ name: "notes", total: 4, row_security: "enabled" });
    expect(resultsOf(body, "select")).toEqual([
      { kind: "denied", policies: [], missing_grants: ['grant select on "public"."notes" to "anon";'] },
      { kind: "rows", count: 0, policies: ["kept_notes", "own_notes"], missing_grants: [] },
      { kind: "rows", count: 1, policies: ["kept_notes", "own_notes"], missing_grants: [] },
    ]);
    expect(resultsOf(body, "insert")[2]).toEqual({ kind: "denied", policies: [], missing_grants: [] });
    expect(resultsOf(body, "delete")[1].missing_grants).toEqual([
      'grant delete on "public"."notes" to "authenticated";',
    ]);
    const { rows } = await operated.owner.query("select count(*)::int from notes");
    expect(rows).toEqual([{ count: 4 }]);
  });

  test("has a page of tables, and the name that continues it; without callers all roles are tried", async () => {
    const names: string[] = [];
    let query = "";
    for (;;) {
      const { body } = await policies(query);
      expect(body.callers[0].role).toBe("anon");
      expect(body.callers.map(({ role }: { role: string }) => role)).not.toContain("authenticator");
      names.push(...body.tables.map(({ name }: { name: string }) => name));
      if (body.next === null) {
        expect(names).toHaveLength(body.table_count);
        break;
      }
      query = `after=${body.next}`;
    }
    expect(names).toEqual(expect.arrayContaining(["notes", "locked", "users"]));
  });

  test("a table that is locked fails for a moment, and blocks nobody", async () => {
    const blocker = new pg.Client({ connectionString: operated.database.ownerUrl });
    await blocker.connect();
    await blocker.query("begin; lock table notes in row exclusive mode; update notes set note = note");
    const { body } = await policies("table=public.notes&role=service_role");
    await blocker.end();
    expect(resultsOf(body, "delete")[0]).toMatchObject({ kind: "failed", code: "55P03" });
  });

  test.each(["role=postgres", "claims=x", "user=0"])("%s is refused", async (query) => {
    expect((await policies(query)).status).toBeGreaterThanOrEqual(400);
  });
});

describe("GET /admin/v1/doctor", () => {
  test("lists the findings of npm run doctor, with the SQL of those that a migration can fix", async () => {
    await operated.owner.query("create table open_notes (id int primary key); grant select on open_notes to anon");
    const find = async () => {
      const { body } = await operated.send("/admin/v1/doctor", { token: operated.tokens.admin });
      return body.findings as { kind: string; problem: string; fix: string; sql: string | null }[];
    };
    await until(async () => (await find()).some(({ problem }) => problem.includes("open_notes")));
    const findings = await find();
    expect(findings[0]!.kind).toBe("danger");
    expect(findings.find(({ problem }) => problem.includes("row-level security is disabled"))).toMatchObject({
      kind: "danger",
      sql: 'alter table "public"."open_notes" enable row level security;',
    });
    expect(findings.filter(({ fix }) => /^(--|[A-Z_]+=)/.test(fix)).every(({ sql }) => sql === null)).toBe(true);
    expect(findings.every(({ sql }) => !sql?.includes("concurrently"))).toBe(true);
  });

  test("compares the database with its migrations when asked to", async () => {
    const { body } = await operated.send("/admin/v1/doctor?migrations=true", { token: operated.tokens.admin });
    expect(JSON.stringify(body.findings)).toMatch(/differs from the migrations|could not be compared/);
  });
});

test("more than four explanations at once are refused", async () => {
  const client = await operated.owner.connect();
  try {
    await client.query("begin; lock table locked");
    const trying = Array.from({ length: 6 }, () => policies("table=public.locked&role=anon"));
    const statuses = (await Promise.all(trying)).map(({ status }) => status).sort();
    expect(statuses).toEqual([200, 200, 200, 200, 503, 503]);
  } finally {
    await client.query("rollback");
    client.release();
  }
  expect((await policies("table=public.locked&role=anon")).status).toBe(200);
});
