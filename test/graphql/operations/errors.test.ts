import { randomBytes } from "node:crypto";
import { Writable } from "node:stream";
import { pino } from "pino";
import { describe, expect, test } from "vitest";
import { useFixture } from "../../fixture.ts";
import { serveGraphQL, tokenFor } from "../../graphql.ts";

const lines: Record<string, unknown>[] = [];
const sink = new Writable({
  write(chunk, _encoding, done) {
    lines.push(JSON.parse(String(chunk)));
    done();
  },
});

/** Functions that fail as the statement says. */
const FAULTS: Readonly<Record<string, string>> = {
  broken: "select 1 / 0 from public.no_such_table",
  bug: "assert false, 'secret plan'",
  spoken: "raise exception 'Not today' using errcode = 'WRONG', detail = 'the_day', hint = 'Try tomorrow.'",
  plain: "raise exception 'Just so'",
  of_theirs: "raise exception 'A code of their own' using errcode = 'MINE1'",
  teapot: "raise exception 'No coffee' using errcode = 'PT418'",
  forbidden: "perform from auth.users",
  writes: "insert into public.users (name, email) values ('x', 'x@example.org')",
  slow: "perform pg_sleep(5)",
  deadlock: "raise exception 'deadlock detected' using errcode = '40P01'",
  number: "perform 'abc'::integer",
  day: "perform '2020-13-45'::date",
  lock: "raise exception 'canceling statement due to lock timeout' using errcode = '55P03'",
};

const functions = Object.entries(FAULTS).map(
  ([name, body]) => `
    create function public.fault_${name}() returns text language plpgsql stable as $$ begin ${body}; return ''; end $$;
    grant execute on function public.fault_${name}() to anon, authenticated;`,
);
const TABLE = `
  create table public.parts (
    id bigint generated always as identity constraint parts_pkey primary key,
    name text not null, owner_id bigint constraint parts_owner_fkey references public.users,
    size integer constraint parts_size_check check (size > 0),
    place text constraint parts_place_key unique,
    constraint parts_pair_key unique (name, size));
  comment on constraint parts_size_check on public.parts is 'Give a size above zero.';
  comment on constraint parts_place_key on public.parts is e'@name place\\nAnother part is in this place.';
  create unique index parts_name_any_case on public.parts (lower(name));
  comment on index public.parts_name_any_case is 'Another part has this name.';
  grant select, insert, update, delete on public.parts to authenticated;
  create table public.makers (id int primary key, constructor text, "valueOf" int default 7);
  create index on public.makers (constructor);
  create index on public.makers ("valueOf");
  grant select, insert on public.makers to anon;
  create table public.oddities (
    id int primary key, ratio float8 default 'NaN', ratios float8[] default '{1,Infinity}', grid int[] default '{{1,2},{3,4}}',
    source regclass, kind regtype);
  insert into public.oddities values (1);
  grant select, update on public.oddities to authenticated;
  create table public.counted (id int primary key default nextval('no_such_sequence'::text), note text);
  grant select, insert on public.counted to authenticated;
  create type public.mark as (i int, "constructor" text);
  create function public.mark_text(m public.mark) returns text stable language sql as $$ select m::text $$;
  grant execute on function public.mark_text to anon;
  create function public.echo(value jsonb) returns text stable language sql as $$ select left(value::text, 9) $$;
  grant execute on function public.echo to anon;
  insert into public.users (name, email) values ('Ann', 'ann@example.org');`;

const graphql = useFixture(() =>
  serveGraphQL({
    log: pino({ level: "error" }, sink),
    settings: { DB_STATEMENT_TIMEOUT_SECONDS: "1" },
    before: TABLE + functions.join(""),
  }),
);

const fault = async (name: string, token?: string) => {
  const field = `fault${name.replace(/(^|_)(\w)/g, (_all, _gap, letter: string) => letter.toUpperCase())}`;
  return (await graphql.ask(`{ ${field} }`, { ...(token && { token }), headers: { "X-Request-Id": `for-${name}` } }))
    .errors?.[0];
};

describe("an error", () => {
  test.each([
    [
      "spoken",
      { message: "Not today", extensions: { code: "VALIDATION_ERROR", field: "theDay", hint: "Try tomorrow." } },
    ],
    ["plain", { message: "Just so", extensions: { code: "VALIDATION_ERROR" } }],
    ["of_theirs", { message: "A code of their own", extensions: { code: "VALIDATION_ERROR" } }],
    ["teapot", { message: "No coffee", extensions: { code: "VALIDATION_ERROR" } }],
    ["number", { message: 'invalid input syntax for type integer: "abc"', extensions: { code: "VALIDATION_ERROR" } }],
    ["day", { message: "There is no such day or time.", extensions: { code: "VALIDATION_ERROR" } }],
    ["forbidden", { message: "Sign in to do this.", extensions: { code: "AUTH_REQUIRED" } }],
    ["slow", { message: "This took too long and was given up.", extensions: { code: "TIMEOUT" } }],
    ["deadlock", { extensions: { code: "RESOURCE_CONFLICT" } }],
    [
      "lock",
      {
        message: "Somebody else is changing the same thing; try again.",
        extensions: { code: "RESOURCE_CONFLICT" },
      },
    ],
  ])("of a function that is %s has a message and its code", async (name, result) => {
    const error = await fault(name);
    expect(error).toMatchObject(result);
    expect(error.path).toHaveLength(1);
    expect(error.locations).toEqual([{ line: 1, column: 3 }]);
  });

  test("of a value that is too long for its index is a client error", async () => {
    const place = randomBytes(6_000).toString("hex");
    const { errors } = await graphql.ask(`mutation { createPart(input: {name: "Long", place: "${place}"}) { id } }`, {
      token: tokenFor(1),
    });
    expect(errors).toMatchObject([{ message: "A value is too long.", extensions: { code: "VALIDATION_ERROR" } }]);
  });

  test("of a malformed query of a text search is a client error", async () => {
    const { errors } = await graphql.ask(`{ parts(where: { place: { fts: { query: "'" } } }) { totalCount } }`, {
      token: tokenFor(1),
    });
    expect(errors).toMatchObject([
      { message: `syntax error in tsquery: "'"`, path: ["parts"], extensions: { code: "VALIDATION_ERROR" } },
    ]);
  });

  test.each([
    [`mutation { updateOddity(id: 1, input: { kind: "(1" }) { id } }`],
    [`{ parts(where: { place: { plfts: { query: "x", language: "101" } } }) { totalCount } }`],
    [`{ parts(where: { place: { plfts: { query: "x", language: "-" } } }) { totalCount } }`],
  ])("of a name that Postgres cannot read is a client error: %s", async (query) => {
    const { errors } = await graphql.ask(query, { token: tokenFor(1) });
    expect(errors).toMatchObject([{ message: "A value is not acceptable.", extensions: { code: "VALIDATION_ERROR" } }]);
  });

  test("of a variable shows numbers as they were sent", async () => {
    const response = await fetch(graphql.url, {
      method: "POST",
      headers: { "Content-Type": "application/json", Authorization: `Bearer ${tokenFor(1)}` },
      body: `{ "query": "query ($at: Time) { articles(filter: { createdAfter: $at }) { totalCount } }", "variables": { "at": 1.50 } }`,
    });
    const { errors } = (await response.json()) as { readonly errors: readonly { readonly message: string }[] };
    expect(errors[0]!.message).toContain("value 1.50;");
  });

  test("of a JSON value that is nested too deeply is a client error", async () => {
    const value = "[".repeat(20_000) + "]".repeat(20_000);
    const response = await fetch(graphql.url, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: `{ "query": "query ($value: JSON!) { echo(value: $value) }", "variables": { "value": ${value} } }`,
    });
    expect(await response.json()).toMatchObject({ errors: [{ extensions: { code: "VALIDATION_ERROR" } }] });
  });

  test.each([
    ["ratio", null, [["oddity", "ratio"]]],
    ["ratios", [1, null], [["oddity", "ratios", 1]]],
    ["grid", null, [["oddity", "grid"]]],
  ])("of a value of %s that GraphQL cannot represent affects no other field", async (field, rest, paths) => {
    const { data, errors } = await graphql.ask(`{ oddity(id: 1) { id ${field} } }`, { token: tokenFor(1) });
    expect(data).toEqual({ oddity: { id: "1", [field]: rest } });
    expect(errors).toMatchObject(paths.map((path) => ({ path, extensions: { code: "VALIDATION_ERROR" } })));
  });

  test("of a value that names an unknown object is a client error", async () => {
    const change = 'mutation { updateOddity(id: 1, input: { source: "no_such_table" }) { id } }';
    const { errors } = await graphql.ask(change, { token: tokenFor(1) });
    expect(errors).toMatchObject([{ message: "A value is not acceptable.", extensions: { code: "VALIDATION_ERROR" } }]);
  });

  test("of an object that the database itself does not find is permanent, and logged", async () => {
    const change = 'mutation { createCounted(input: { note: "x" }) { id } }';
    const { errors } = await graphql.ask(change, { token: tokenFor(1) });
    expect(errors).toMatchObject([{ message: "Internal error", extensions: { code: "INTERNAL_ERROR" } }]);
    expect(lines.find(({ request }) => request === errors[0].extensions.requestId)).toMatchObject({
      msg: "internal error",
    });
  });

  test("of a change in a read-only transaction has its own code", async () => {
    const change = "mutation { updateOddity(id: 1, input: { source: null }) { id } }";
    const isRefused = async () => (await graphql.ask(change, { token: tokenFor(1) })).errors;
    const login = `alter role authenticator in database ${graphql.database.name}`;
    const hangUp =
      "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'authenticator' and datname = current_database()";
    await graphql.sql(`${login} set default_transaction_read_only = on`);
    await graphql.sql(hangUp);
    await expect.poll(isRefused).toMatchObject([{ extensions: { code: "PERMISSION_DENIED" } }]);
    await graphql.sql(`${login} reset default_transaction_read_only`);
    await graphql.sql(hangUp);
    await expect.poll(isRefused).toBeUndefined();
  });

  test("of a statement that exceeds the time limit of the caller's role is returned, with any other limits", async () => {
    const role = `alter role authenticated in database ${graphql.database.name}`;
    await graphql.sql(`${role} set statement_timeout = '100ms'`);
    await graphql.sql("notify pgrst, 'reload schema'");
    await expect
      .poll(
        async () => {
          const startedAt = performance.now();
          expect(await fault("slow", tokenFor(1))).toMatchObject({ extensions: { code: "TIMEOUT" } });
          return performance.now() - startedAt;
        },
        { timeout: 10_000 },
      )
      .toBeLessThan(800);
    await graphql.sql(`${role} reset statement_timeout`);
  });

  test("of a missing privilege differs for signed-in callers, and names no object", async () => {
    expect(await fault("forbidden", tokenFor(1))).toMatchObject({
      message: "You may not do this.",
      extensions: { code: "PERMISSION_DENIED" },
    });
  });

  test.each(["broken", "bug", "writes"])(
    "that is unexpected (%s) is masked, and logged under the id in the response",
    async (name) => {
      const error = await fault(name);
      expect(error).toEqual({
        message: "Internal error",
        locations: [{ line: 1, column: 3 }],
        path: expect.anything(),
        extensions: { code: "INTERNAL_ERROR", requestId: `for-${name}`, hint: expect.stringContaining("its log") },
      });
      expect(lines.find(({ request }) => request === `for-${name}`)).toMatchObject({ msg: "internal error" });
    },
  );

  test("that is internal has the configured HTTP status", async () => {
    const strict = await serveGraphQL({
      database: graphql.database,
      settings: { GRAPHQL_INTERNAL_ERROR_STATUS: "400" },
    });
    try {
      expect((await graphql.ask("{ faultBug }")).status).toBe(200);
      expect((await strict.ask("{ faultBug }")).status).toBe(400);
      expect((await strict.ask("{ faultSpoken }")).status).toBe(200);
    } finally {
      await strict.stop();
    }
  });

  test("of one field leaves the others, if the schema allows", async () => {
    const { data, errors } = await graphql.ask("{ faultPlain user(id: 1) { name } }");
    expect(data).toEqual({ faultPlain: null, user: { name: "Ann" } });
    expect(errors).toHaveLength(1);
  });

  test.each(["constructor", "toString", "__proto__"])(
    "of an omitted variable $%s with the name of an Object.prototype property names it",
    async (name) => {
      const query = `query ($${name}: Int) { articles(first: $${name}) { totalCount } }`;
      expect((await graphql.ask(query)).errors).toMatchObject([{ extensions: { code: "VALIDATION_ERROR" } }]);
      expect((await graphql.ask(query.replace("Int)", "Int = 3)"))).data).toEqual({ articles: { totalCount: 0 } });
      if (name === "__proto__") return;
      expect((await graphql.ask(query, { variables: { [name]: 1 } })).data).toEqual({ articles: { totalCount: 0 } });
    },
  );

  test("of an omitted column with the name of an Object.prototype property is not invented", async () => {
    const create = (input: object) =>
      graphql.ask("mutation ($input: CreateMakerInput!) { createMaker(input: $input) { id constructor valueOf } }", {
        variables: { input },
      });
    expect((await create({ id: 1 })).data).toEqual({ createMaker: { id: "1", constructor: null, valueOf: 7 } });
    expect((await create({ id: 2, constructor: "Lotus", valueOf: null })).data).toEqual({
      createMaker: { id: "2", constructor: "Lotus", valueOf: null },
    });
    const find = (filter: object) =>
      graphql.ask("query ($filter: MakerFilterInput) { makers(filter: $filter) { totalCount } }", {
        variables: { filter },
      });
    expect((await find({})).data).toEqual({ makers: { totalCount: 2 } });
    expect((await find({ constructor: "Lotus" })).data).toEqual({ makers: { totalCount: 1 } });
    const mark = async (m: object) =>
      (await graphql.ask("query ($m: MarkInput!) { markText(m: $m) }", { variables: { m } })).data;
    expect(await mark({ i: 1 })).toEqual({ markText: "(1,)" });
    expect(await mark({ i: 1, constructor: "Lotus" })).toEqual({ markText: "(1,Lotus)" });
    expect((await graphql.ask("{ markText(m: { i: 1 }) }")).data).toEqual({ markText: "(1,)" });
  });

  test("names the variable with an invalid value, before any statement runs", async () => {
    const { data, errors } = await graphql.ask("query ($n: Int) { articles(first: $n) { totalCount } }", {
      variables: { n: "x" },
    });
    expect(data).toBeUndefined();
    expect(errors).toMatchObject([
      { message: expect.stringContaining('"$n"'), extensions: { code: "VALIDATION_ERROR" } },
    ]);
  });
});

describe("a broken constraint", () => {
  const create = async (input: string) =>
    (await graphql.ask(`mutation { createPart(input: {${input}}) { id } }`, { token: tokenFor(1) })).errors?.[0];

  test("has the message of the constraint's comment, and the field", async () => {
    expect(await create('name: "a", size: 0')).toMatchObject({
      message: "Give a size above zero.",
      extensions: { code: "VALIDATION_ERROR", field: "size" },
    });
    expect(await create('name: "b", place: "shelf"')).toBeUndefined();
    expect(await create('name: "c", place: "shelf"')).toMatchObject({
      message: "Another part is in this place.",
      extensions: { code: "RESOURCE_CONFLICT", field: "place" },
    });
  });

  test("of an index has the message of the index's comment", async () => {
    expect(await create('name: "B"')).toMatchObject({
      message: "Another part has this name.",
      extensions: { code: "RESOURCE_CONFLICT" },
    });
  });

  test("without a comment has a general message that names no object", async () => {
    const error = await create('name: "d", ownerId: 99');
    expect(error).toMatchObject({ extensions: { code: "RESOURCE_CONFLICT" } });
    expect(error.message).not.toMatch(/parts|fkey|users/);
  });
});

test("fails an operation with SERVICE_UNAVAILABLE while the database is unavailable, and not afterwards", async () => {
  await graphql.sql(
    "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'authenticator' and datname = current_database()",
  );
  const result = await Promise.all(Array.from({ length: 20 }, () => graphql.ask("{ user(id: 1) { name } }")));
  for (const { data } of result) expect(data).toEqual({ user: { name: "Ann" } });
});
