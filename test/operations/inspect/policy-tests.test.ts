import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { loadCatalog } from "../../../catalog/load-catalog.ts";
import { readConfig } from "../../../config/config.ts";
import { parsePolicyTest, runPolicyTest } from "../../../operations/inspect/policy-tests.ts";
import { makeCallerContexts } from "../../../service/cli/command/command-context.ts";
import { useContent } from "../../db/content.ts";

const content = useContent();

/** The failures of a test file, by line; null where the result is as expected. */
async function failuresOf(text: string, environment: NodeJS.ProcessEnv = {}): Promise<Record<number, string | null>> {
  const { config } = readConfig(environment);
  const { schemas, extraSearchPath, anonRole } = config;
  const options = { schemas, extraSearchPath, loginRole: "authenticator", timeZones: false };
  const { catalog } = await loadCatalog(content.owner, options);
  const failures: Record<number, string | null> = {};
  const dependencies = {
    client: content.owner,
    loginRole: "authenticator",
    anonRole,
    contextOf: makeCallerContexts(catalog, config),
  };
  await runPolicyTest(parsePolicyTest(text), dependencies, ({ line, failure }) => {
    failures[line] = failure;
  });
  return failures;
}

describe("parsePolicyTest", () => {
  test("reads callers, interfaces and expectations, on the line of a statement or below it", () => {
    const statements = parsePolicyTest(`-- a comment
--! as owner
insert into notes values (';--x');
--! as anon
select 1; --! expect 1 row
--! interface graphql
--! as admin {"sub": "7"}
update notes
  set words = 'a';
--! expect error 23514
--! as user ada@example.org
select 2; --! expect no rows
`);
    expect(statements).toMatchObject([
      { line: 3, sql: "insert into notes values (';--x')", caller: { kind: "owner" }, expectation: null },
      {
        line: 5,
        sql: "select 1",
        caller: { role: "anon", claims: {} },
        expectation: { count: 1 },
        interfaceName: "table",
      },
      { line: 8, caller: { role: "admin", claims: { sub: "7" } }, expectation: { code: "23514" } },
      {
        line: 12,
        caller: { kind: "user", name: "ada@example.org" },
        expectation: { count: 0 },
        interfaceName: "graphql",
      },
    ]);
  });

  test.each([
    ["select 1;", 1, "Say above it who runs"],
    ["--! as anon\nselect 1 --! expect 1 row\nselect 2; --! expect rows", 2, "ends without a semicolon"],
    ["--! as anon\nselect 1; --! expct 1 row", 2, '"expct 1 row" is none of'],
    ["--! as anon\nselect 1; --! expect many rows", 2, '"expect many rows" is none of'],
    ["--! as anon\nselect 1; --! expect rows\n--! expect denied", 3, "has an expectation already"],
    ["--! as anon\n--! expect denied", 2, "no statement before"],
    ["--! as user", 1, "Say which user"],
    ["--! as admin 7", 1, "The claims must be a JSON object"],
    ["--! interface soap", 1, "The interface is one of"],
    ["--! as owner\ncommit;", 2, "one transaction"],
  ])("names the line of a mistake: %j", (text, line, message) => {
    expect(() => parsePolicyTest(text)).toThrow(
      expect.objectContaining({ line, message: expect.stringContaining(message) }),
    );
  });
});

describe("runPolicyTest", () => {
  beforeAll(() =>
    content.owner.query(`
      create table public.orders (
        id int primary key,
        author_id bigint default auth.uid(),
        note text check (length(note) < 10),
        unique (note) deferrable initially deferred
      );
      alter table public.orders enable row level security;
      create policy own on public.orders using (author_id = (select auth.uid()));
      create policy by_interface on public.orders for select using (current_setting('request.interface') = 'graphql');
      grant select, insert, update, delete on public.orders to anon, authenticated;
      insert into public.orders values (1, 1, 'a'), (2, 1, 'b'), (3, 2, 'c')`),
  );
  afterAll(() => content.owner.query("drop table public.orders"));

  test("compares each statement with what its caller gets", async () => {
    const failures = await failuresOf(`--! as user 1
select * from orders; --! expect 2 rows
select * from orders; --! expect 3 rows
select * from orders; --! expect rows
delete from orders where author_id = 2; --! expect no rows
delete from orders; --! expect no rows
insert into orders values (4, 2); --! expect denied
insert into orders values (4); --! expect denied
insert into orders (id, note) values (4, 'longer than 10'); --! expect error 23514
insert into orders (id, note) values (4, 'a'); --! expect error 23505
select * from auth.users; --! expect denied
insert into orders (id) values (4); --! expect success
select * from nothing; --! expect success
--! as anon
select * from orders; --! expect rows
`);
    expect(failures).toEqual({
      2: null,
      3: "expected 3 rows, got 2 rows",
      4: null,
      5: null,
      6: "expected no rows, got 2 rows",
      7: null,
      8: "expected denied, got 1 row",
      9: null,
      10: null,
      11: null,
      12: null,
      13: 'expected success, got error 42P01 (relation "nothing" does not exist)',
      15: "expected rows, got no rows",
    });
  });

  test("fails where no rows are expected and the owner gets none either", async () => {
    const failures = await failuresOf(`--! as anon
select * from orders where id = 1; --! expect no rows
select * from orders where id = 99; --! expect no rows
--! as owner
select * from orders where id = 99; --! expect no rows
`);
    expect(failures).toEqual({ 2: null, 3: expect.stringContaining("the owner gets no rows either"), 5: null });
  });

  test("keeps the effects of steps until the end of the file, and none after it", async () => {
    const failures = await failuresOf(`--! as user 1
insert into orders (id, note) values (4, 'd');
delete from orders; --! expect 3 rows
select * from orders; --! expect 3 rows
--! as owner
select * from orders; --! expect 4 rows
`);
    expect(failures).toEqual({ 3: null, 4: null, 6: null });
    expect((await content.owner.query("select from orders")).rowCount).toBe(3);
  });

  test("names the line of a step that fails", async () => {
    const text = "--! as anon\n\ninsert into orders values (1, 1);";
    await expect(failuresOf(text)).rejects.toMatchObject({
      line: 3,
      message: 'new row violates row-level security policy for table "orders"',
    });
  });

  test("runs as the login, with the role, claims, interface and settings of a request", async () => {
    const failures = await failuresOf(
      `--! as user 1
select where session_user = 'authenticator' and current_user = 'authenticated'; --! expect 1 row
select where current_setting('app.users_access') = 'owner'; --! expect 1 row
--! interface graphql
select * from orders; --! expect 3 rows
--! as admin {"sub": "7", "tenant": "acme"}
select where current_user = 'admin' and auth.uid() = 7 and auth.jwt() ->> 'tenant' = 'acme'; --! expect 1 row
--! as anon
select where current_user = 'anon' and auth.uid() is null; --! expect 1 row
--! as owner
select where session_user = 'postgres' and current_user = 'postgres' and auth.uid() is null; --! expect 1 row
`,
      { USERS_ACCESS: "owner" },
    );
    expect(Object.values(failures)).toEqual([null, null, null, null, null, null]);
  });

  test("gives users the claims of their tokens, and refuses those who do not exist", async () => {
    const failures = await failuresOf(`--! as owner
select auth.register('Eve', 'eve@example.org', null, null, null, null);
select auth.assign_role((auth.find_account('eve@example.org')).user_id, 'admin', null);
--! as user eve@example.org
select where current_user = 'admin' and auth.jwt() ->> 'name' = 'Eve'; --! expect 1 row
`);
    expect(failures).toEqual({ 5: null });
    for (const name of ["nobody@example.org", "999999"]) {
      await expect(failuresOf(`--! as user ${name}\nselect 1; --! expect rows`)).rejects.toMatchObject({
        line: 2,
        message: expect.stringContaining(`There is no user ${name}.`),
      });
    }
    await expect(failuresOf("--! as postgres\nselect 1; --! expect rows")).rejects.toThrow(
      'cannot use the role "postgres"',
    );
  });
});

test("a caller's settings have a statement each, which Citus passes on to its workers, and no role", async () => {
  const queries = vi.spyOn(content.owner, "query");
  const failures = await failuresOf(
    '--! as authenticated {"sub": "7"}\nselect current_setting(\'request.jwt.claims\'); --! expect 1 row',
  );
  const texts = queries.mock.calls.map(([text]) => String(text));
  queries.mockRestore();
  expect(failures).toEqual({ 2: null });
  const [passed, claims] = ["set local citus.propagate_set_commands = 'local'", 'set local "request.jwt.claims" = '];
  const last = (part: string) => texts.findLastIndex((text) => text.startsWith(part));
  expect(texts[last(claims)]).toBe(`${claims}'{"sub":"7","role":"authenticated"}'`);
  expect(last(passed)).toBeLessThan(last(claims));
  const roles = texts.filter((text) => text.includes("local role"));
  expect(roles.length).toBeGreaterThan(0);
  expect(roles.every((text) => text.startsWith("set local citus.propagate_set_commands = 'none'; "))).toBe(true);
});
