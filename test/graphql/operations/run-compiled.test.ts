import { setTimeout as sleep } from "node:timers/promises";
import { createClient } from "graphql-ws";
import { describe, expect, test } from "vitest";
import WebSocket from "ws";
import { REQUESTS_AFTER_LIMIT } from "../../../graphql/compile/operation-plans.ts";
import { collectGarbage } from "../../../runtime/memory/collect-garbage.ts";
import { useDatabase } from "../../database.ts";
import { useFixture } from "../../fixture.ts";
import { type GraphQLService, serveGraphQL } from "../../graphql.ts";
import { propertyRuns } from "../../property-runs.ts";
import { until } from "../../until.ts";
import { operationOutcomes } from "../compile/oracle.ts";
import { BY_GRAFAST } from "../grafast/grafast-stages.ts";

const ROWS = `
  create table public.things (id int primary key, name text not null, extra text, wide text);
  insert into public.things select n, 'thing ' || n, 'extra', repeat('x', 1000) from generate_series(1, 100) as n;
  create table public.listed (id int primary key, name text);
  comment on table public.listed is '@list';
  insert into public.listed values (1, 'one'), (2, 'two');
  create function public.slow() returns text language plpgsql stable as $$ begin perform pg_sleep(30); return 'awake'; end $$;
  create function public.failing(thing public.things) returns text language plpgsql stable as $$
    begin if thing.id = 3 then raise exception 'not three' using errcode = '22023'; end if; return 'fine'; end $$;
  create function public.numbers(most int default 3) returns setof int language sql stable
    as 'select n from generate_series(1, most) as n';
  create function public.wide_name(times int default 1) returns text language sql stable as $$ select repeat('wide ', 100 * times) $$;
  create type public.size as enum ('SMALL', 'LARGE');
  create table public.changing (id int primary key, number int, flag boolean, document json, exact numeric, size public.size, name text);
  insert into public.changing values (1, 1, true, '{}', 1, 'SMALL', 'original');
  create table public.deep (id int generated always as identity primary key, value json not null);
  create function public.create_deep() returns public.deep language sql volatile security definer
    as $$ insert into public.deep (value) values ((repeat('[', 6000) || repeat(']', 6000))::json) returning * $$;
  create table public.steps (id int primary key, txid bigint not null default txid_current(), name text not null default 'made');
  create function public.take_step(number int, fails boolean default false) returns public.steps language plpgsql volatile security definer as $$
    declare made public.steps; begin
      insert into public.steps values (number) returning * into made;
      if fails then raise exception 'Step % fails.', number using errcode = 'P0001'; end if;
      return made;
    end $$;
  create function public.steps_before(step public.steps) returns int language sql stable security definer
    as 'select count(*)::int from public.steps where id < step.id';
  create function public.count_steps() returns int language sql volatile security definer as 'select count(*)::int from public.steps';
  grant usage on schema public to anon;
  grant select, insert, delete on public.steps to anon;
  grant execute on function public.take_step, public.steps_before, public.count_steps to anon;
  grant select on public.changing, public.deep, public.things, public.listed to anon;
  grant execute on function public.slow, public.failing, public.numbers, public.create_deep, public.wide_name to anon;
`;
const SETTINGS = {
  ADMIN_PORT: "0",
  REST_REQUIRE_APIKEY: "false",
  GRAPHQL_STATEMENT_TIMEOUT_SECONDS: "1",
  MAX_ANSWER_BYTES: "262144",
  PGRST_DB_AGGREGATES_ENABLED: "true",
};

const database = useDatabase({ template: "empty" });
const compiling = useFixture(() => serveGraphQL({ database, settings: SETTINGS, before: ROWS }));
const plain = useFixture(() => serveGraphQL({ database, settings: SETTINGS, options: BY_GRAFAST }));

/** Returns the number of operations that ran each way during the work. */
async function waysOf(work: () => Promise<unknown>): Promise<Readonly<Record<string, number>>> {
  const before = await operationOutcomes(compiling.service);
  await work();
  const after = await operationOutcomes(compiling.service);
  const added = Object.entries(after).map(([way, count]) => [way, count - (before[way] ?? 0)] as const);
  return Object.fromEntries(added.filter(([, count]) => count > 0));
}

type Request = Parameters<GraphQLService["ask"]>[1];

/** The answer, which is the same both ways. */
async function sameAnswer(query: string, request?: Request) {
  const { data, errors, status } = await compiling.ask(query, request);
  const other = await plain.ask(query, request);
  expect({ data, errors, status }).toEqual({ data: other.data, errors: other.errors, status: other.status });
  return { data, errors };
}

describe("an operation that can be compiled", () => {
  test("is one statement, and counted", async () => {
    expect(await waysOf(() => sameAnswer("{ thing(id: 1) { name } }"))).toEqual({ compiled: 1 });
  });

  test("has the same data over a WebSocket", async () => {
    const client = createClient({ url: compiling.socketUrl, webSocketImpl: WebSocket, retryAttempts: 0 });
    const results: unknown[] = [];
    const ways = await waysOf(async () => {
      for await (const result of client.iterate({ query: "{ thing(id: 1) { id name } }" })) results.push(result);
    });
    await client.dispose();
    expect(results).toEqual([{ data: { thing: { id: "1", name: "thing 1" } } }]);
    expect(ways).toEqual({ compiled: 1 });
  });

  test("is compiled once per number of rows and combination of variables", async () => {
    const query =
      "query ($first: Int, $after: String) { things(first: $first, after: $after) { edges { cursor node { id } } } }";
    const { data } = await sameAnswer(query, { variables: { first: 2 } });
    const after = data.things.edges[1].cursor;
    expect((await sameAnswer(query, { variables: { first: 2, after } })).data.things.edges).toMatchObject([
      { node: { id: "3" } },
      { node: { id: "4" } },
    ]);
    expect((await sameAnswer(query, { variables: { first: 3, after } })).data.things.edges).toHaveLength(3);
    expect((await sameAnswer(query)).data.things.edges).toHaveLength(10);
  });

  test("is compiled with the conditions and the order of its variables", async () => {
    const query = `query ($where: ThingWhereInput, $orderBy: [ThingOrderByInput!], $after: String, $name: String, $isNull: Boolean) {
      things(where: $where, orderBy: $orderBy, after: $after, first: 2) { edges { cursor node { id } } totalCount }
      other: things(where: { name: { eq: $name }, extra: { isNull: $isNull } }, first: 1) { totalCount }
    }`;
    const read = async (variables: object) => {
      const { data } = await sameAnswer(query, { variables: variables as Record<string, unknown> });
      const { edges, totalCount } = data.things;
      const ids = edges.map(({ node }: { readonly node: { readonly id: string } }) => node.id);
      return { ids, totalCount, other: data.other.totalCount, cursor: edges.at(-1)?.cursor };
    };
    const names = (...each: readonly string[]) => ({ or: each.map((name) => ({ name: { eq: name } })) });
    const orderBy = [{ extra: "ASC" }, { name: "DESC" }];
    const ways = await waysOf(async () => {
      expect(await read({})).toMatchObject({ ids: ["1", "2"], totalCount: 100, other: 100 });
      expect(await read({ where: null, name: null, isNull: null })).toMatchObject({ totalCount: 100, other: 0 });
      expect(await read({ where: names("thing 3"), name: "thing 1" })).toMatchObject({ ids: ["3"], other: 1 });
      expect(await read({ where: names("thing 4"), name: "none" })).toMatchObject({ ids: ["4"], other: 0 });
      expect(await read({ where: names("thing 3", "thing 5") })).toMatchObject({ ids: ["3", "5"], totalCount: 2 });
      expect(await read({ where: names(), isNull: true })).toMatchObject({ ids: [], totalCount: 0, other: 0 });
      expect(await read({ isNull: false })).toMatchObject({ other: 100 });
      const page = await read({ orderBy });
      expect(page.ids).toEqual(["99", "98"]);
      expect((await read({ orderBy, after: page.cursor })).ids).toEqual(["97", "96"]);
      expect((await read({ orderBy: [{ id: "DESC" }] })).ids).toEqual(["100", "99"]);
    });
    expect(ways).toEqual({ compiled: 10 });
  });

  test("has aggregates of all rows that its filters select, grouped by the selected columns", async () => {
    const query = `query ($most: ID!) { things(first: 1, where: { id: { lte: $most } }) {
      totalCount all: aggregates { count max { id name } min { id } } aggregates { group { extra } count } } }`;
    const ways = await waysOf(async () => {
      expect((await sameAnswer(query, { variables: { most: "5" } })).data.things).toEqual({
        totalCount: 5,
        all: [{ count: "5", max: { id: "5", name: "thing 5" }, min: { id: "1" } }],
        aggregates: [{ group: { extra: "extra" }, count: "5" }],
      });
      expect((await sameAnswer(query, { variables: { most: "0" } })).data.things).toEqual({
        totalCount: 0,
        all: [{ count: "0", max: { id: null, name: null }, min: { id: null } }],
        aggregates: [],
      });
    });
    expect(ways).toEqual({ compiled: 2 });
  });

  test("counts all rows that the filters select, whatever part of them is on the page", async () => {
    const query = `query ($page: Int, $last: Int, $after: String, $before: String) {
      things(first: $page, last: $last, after: $after, before: $before, where: { id: { lte: "5" } }) { edges { cursor node { id } } totalCount } }`;
    const read = async (variables: Readonly<Record<string, unknown>>) => {
      const { edges, totalCount } = (await sameAnswer(query, { variables })).data.things;
      expect(totalCount).toBe(5);
      return edges as readonly { readonly cursor: string }[];
    };
    const ways = await waysOf(async () => {
      for (const size of [0, 1, 4, 5, 6, 100]) {
        expect(await read({ page: size })).toHaveLength(Math.min(size, 5));
        expect(await read({ last: size })).toHaveLength(Math.min(size, 5));
      }
      const [, second] = await read({ page: 2 });
      expect(await read({ page: 4, after: second!.cursor })).toHaveLength(3);
      expect(await read({ last: 4, before: second!.cursor })).toHaveLength(1);
    });
    expect(ways).toEqual({ compiled: 15 });
  });

  test("replaces an absent variable by the default of a function, and a null by none, where it is a number of rows too", async () => {
    const query = "query ($n: Int) { numbers(most: $n) things(first: $n) { totalCount } }";
    expect((await sameAnswer(query, { variables: { n: 2 } })).data.numbers).toEqual([1, 2]);
    expect((await sameAnswer(query)).data.numbers).toEqual([1, 2, 3]);
    expect((await sameAnswer(query, { variables: { n: null } })).data.numbers).toEqual([]);
  });
});

describe("an operation that Grafast runs", () => {
  test("is counted by the reason", async () => {
    expect(await waysOf(() => compiling.ask("{ __schema { queryType { name } } }"))).toEqual({ introspection: 1 });
    expect(await waysOf(() => sameAnswer('{ things(first: 1, after: "W10=") { totalCount } }'))).toEqual({
      argument: 1,
    });
  });

  test("is one with an argument that the compiler does not know", async () => {
    const { data } = await sameAnswer('{ listeds(where: { name: { eq: "two" } }) { id } }');
    expect(data).toEqual({ listeds: [{ id: "2" }] });
    expect((await sameAnswer("{ listeds(orderBy: [{ id: DESC }]) { id } }")).data.listeds).toMatchObject([
      { id: "2" },
      { id: "1" },
    ]);
  });

  test("is one whose statement fails: errors are assigned to fields", async () => {
    const ways = await waysOf(async () => {
      const { data, errors } = await sameAnswer("{ things(first: 4) { edges { node { id failing } } } }");
      expect(data).toBeNull();
      expect(errors).toMatchObject([{ path: ["things"] }]);
    });
    expect(ways).toEqual({ compiled: 1, refused: 1 });
  });
});

describe("a mutation", () => {
  test("is not repeated when its committed result cannot be written as JSON", async () => {
    const { data, errors } = await compiling.ask("mutation { createDeep { value } }");
    expect(data).toBeNull();
    expect(errors).toMatchObject([{ message: "A value is nested too deeply.", path: ["createDeep"] }]);
    expect(await compiling.sql("select id from public.deep")).toHaveLength(1);
  });
});

describe("several mutations", () => {
  /** The same answers by both services, on the same rows. */
  const sameChange = async (query: string, request?: Request) => {
    const answers = [];
    for (const { ask, sql } of [plain, compiling]) {
      await sql("delete from public.steps");
      const { data, errors } = await ask(query, request);
      answers.push({ data, errors, rows: await sql("select id, name from public.steps order by id") });
    }
    expect(answers[1]).toEqual(answers[0]);
    return answers[1]!;
  };

  test("are compiled, and run one after the other in transactions of their own", async () => {
    const ways = await waysOf(async () => {
      const { data } = await sameChange(
        `mutation ($id: Int!) { __typename first: takeStep(input: { number: $id }) { id before }
        createStep(input: { id: "2", txid: "7" }) { id name } again: __typename countSteps second: takeStep(input: { number: 3 }) { id before } last: __typename }`,
        {
          variables: { id: 1 },
        },
      );
      expect(Object.entries(data)).toEqual([
        ["__typename", "Mutation"],
        ["first", { id: "1", before: 0 }],
        ["createStep", { id: "2", name: "made" }],
        ["again", "Mutation"],
        ["countSteps", 2],
        ["second", { id: "3", before: 2 }],
        ["last", "Mutation"],
      ]);
    });
    expect(ways).toEqual({ compiled: 1 });
    const rows = await compiling.sql<{ txid: string }>("select distinct txid from public.steps");
    expect(rows).toHaveLength(3);
  });

  test("run although one before has failed, and have its error", async () => {
    const ways = await waysOf(async () => {
      const { data, errors, rows } = await sameChange(
        "mutation { a: takeStep(input: { number: 1 }) { id } b: takeStep(input: { number: 2, fails: true }) { id } c: takeStep(input: { number: 3 }) { id } d: takeStep(input: { number: 3 }) { id } }",
      );
      expect({ data, rows }).toMatchObject({ data: null, rows: [{ id: 1 }, { id: 3 }] });
      expect(errors).toMatchObject([{ message: "Step 2 fails.", path: ["b"] }]);
    });
    expect(ways).toEqual({ compiled: 1 });
  });

  test("have the same data over a WebSocket", async () => {
    await compiling.sql("delete from public.steps");
    const client = createClient({ url: compiling.socketUrl, webSocketImpl: WebSocket, retryAttempts: 0 });
    const query =
      "mutation { a: takeStep(input: { number: 1 }) { id } __typename b: takeStep(input: { number: 2 }) { id before } }";
    const results: unknown[] = [];
    const ways = await waysOf(async () => {
      for await (const result of client.iterate({ query })) results.push(result);
    });
    await client.dispose();
    expect(results).toEqual([{ data: { a: { id: "1" }, __typename: "Mutation", b: { id: "2", before: 1 } } }]);
    expect(ways).toEqual({ compiled: 1 });
  });

  test("leave only those to Grafast whose result cannot be read", async () => {
    const query = "mutation { deleteStep(id: 9) createDeep { value } countSteps }";
    const ways = await waysOf(async () => {
      const { errors } = await compiling.ask(query);
      expect(errors).toMatchObject([{ path: ["createDeep"] }]);
    });
    expect(ways).toEqual({ compiled: 1 });
  });
});

describe("limits hold for compiled operations", () => {
  test("of aliases", async () => {
    const aliases = Array.from({ length: 1001 }, (_, index) => `a${index}: name`).join(" ");
    const { data, errors } = await sameAnswer(`{ thing(id: 1) { ${aliases} } }`);
    expect(data).toBeUndefined();
    expect(errors.length).toBeGreaterThan(0);
  });

  test("of the duration of a statement, which does not run twice", async () => {
    const ways = await waysOf(async () => {
      const { data, errors } = await sameAnswer("{ slow }");
      expect(data).toEqual({ slow: null });
      expect(errors).toMatchObject([{ path: ["slow"], extensions: { code: "TIMEOUT" } }]);
    });
    expect(ways).toEqual({ compiled: 1 });
  });

  test("for each of several fields, which Grafast reads by itself when they exceed the limit together", async () => {
    const slow = await sameAnswer("{ slow thing(id: 1) { name } }");
    expect(slow.data).toEqual({ slow: null, thing: { name: "thing 1" } });
    const large = await sameAnswer("{ a: wideName b: wideName c: thing(id: 1) { name } large: wideName(times: 1000) }");
    expect(large.data).toMatchObject({ c: { name: "thing 1" }, large: null });
  });

  test("and the next requests are left to Grafast at once, until the statement is tried again", async () => {
    const query = "query ($times: Int) { left: wideName(times: $times) thing(id: 1) { name } }";
    const askWith = (times: number) => sameAnswer(query, { variables: { times } });
    expect(await waysOf(() => askWith(1000))).toEqual({ compiled: 1, limit: 1 });
    const requests = Array.from({ length: REQUESTS_AFTER_LIMIT }, () => () => askWith(1));
    const ways = await waysOf(async () => {
      for (const request of requests) expect((await request()).data.thing).toEqual({ name: "thing 1" });
    });
    expect(ways).toEqual({ limit: REQUESTS_AFTER_LIMIT });
    expect(await waysOf(() => askWith(1))).toEqual({ compiled: 1 });
  });

  test("of the size of a response", async () => {
    const { data, errors } = await sameAnswer("{ things(first: 100) { edges { node { wide } } } }");
    expect(data).toBeNull();
    expect(errors).toMatchObject([{ path: ["things"], extensions: { code: "ANSWER_TOO_LARGE" } }]);
  });

  test("of pages", async () => {
    const { errors } = await sameAnswer("query ($first: Int) { things(first: $first) { totalCount } }", {
      variables: { first: -1 },
    });
    expect(errors).toMatchObject([{ message: "first must not be negative." }]);
  });

  test("and the statement ends when the client has disconnected", async () => {
    const leaving = new AbortController();
    const running =
      "select count(*)::int as count from pg_stat_activity where state = 'active' and query like '%slow%' and pid <> pg_backend_pid()";
    const count = async () => (await compiling.sql<{ count: number }>(running))[0]!.count;
    const body = JSON.stringify({ query: "{ awake: slow }" });
    const headers = { "Content-Type": "application/json" };
    const answer = fetch(compiling.url, { method: "POST", headers, body, signal: leaving.signal }).catch(() => "left");
    await until(async () => (await count()) > 0);
    leaving.abort();
    expect(await answer).toBe("left");
    await until(async () => (await count()) === 0);
  });
});

describe("documents that are all different", () => {
  test("leave the memory as it is: statements are kept for the latest documents only", async () => {
    const batch = propertyRuns(2_500);
    let asked = 0;
    const askBatch = async () => {
      for (const last = asked + batch; asked < last; ) {
        const documents = Array.from({ length: 10 }, () => `{ thing(id: 1) { a${asked++}: name } }`);
        const answers = await Promise.all(documents.map((document) => compiling.ask(document)));
        expect(answers.every(({ errors }) => errors === undefined)).toBe(true);
      }
      collectGarbage();
      return process.memoryUsage().heapUsed;
    };
    await askBatch();
    const before = await askBatch();
    await askBatch();
    expect((await askBatch()) - before).toBeLessThan(16 * 2 ** 20);
  });
});

describe("a change of the schema", () => {
  test("ends the statements that name a dropped column", async () => {
    const query = "{ thing(id: 1) { id extra } }";
    expect((await compiling.ask(query)).data).toEqual({ thing: { id: "1", extra: "extra" } });
    await compiling.sql("alter table public.things drop column extra");
    await until(async () => (await compiling.ask(query)).errors?.[0].extensions.code === "GRAPHQL_VALIDATION_FAILED");
    await compiling.sql("alter table public.things add column extra text default 'new'");
    await until(async () => (await compiling.ask(query)).data?.thing?.extra === "new");
  });

  test("ends all statements that read, filter or order by a dropped column", async () => {
    await compiling.sql("alter table public.changing add column going text default 'here'");
    const documents = Array.from({ length: 30 }, (_, index) => [
      `{ changing(id: 1) { a${index}: going } }`,
      `{ changings(where: { going: { eq: "here" } }) { edges { node { a${index}: id } } } }`,
      `{ changings(orderBy: [{ going: DESC }]) { edges { node { a${index}: id } } } }`,
      `query ($where: ChangingWhereInput) { changings(where: $where) { aggregates { a${index}: count } } }`,
    ]).flat();
    const variables = { where: { going: { eq: "here" } } };
    const codesOf = async () => {
      const answers = await Promise.all(documents.map((document) => compiling.ask(document, { variables })));
      return new Set(answers.map(({ errors }) => errors?.[0].extensions.code as string | undefined));
    };
    const areAllAnswered = async () => [...(await codesOf())].every((code) => code === undefined);
    await until(areAllAnswered);
    const ways = await waysOf(async () => expect(await codesOf()).toEqual(new Set([undefined])));
    expect(ways).toEqual({ compiled: documents.length });
    await compiling.sql("alter table public.changing drop column going");
    await until(async () => !(await codesOf()).has("SERVICE_UNAVAILABLE"));
    const codes = await codesOf();
    expect(codes).not.toContain(undefined);
    expect([...codes].filter((code) => code !== "GRAPHQL_VALIDATION_FAILED" && code !== "VALIDATION_ERROR")).toEqual(
      [],
    );
  });

  test.each(["number", "flag", "document", "exact", "size"])(
    "to another type of a column does not let its text become JSON of the response (%s)",
    async (column) => {
      const query = `{ changing(id: 1) { name ${column} } }`;
      expect((await compiling.ask(query)).data.changing.name).toBe("original");
      const text = column === "exact" || column === "size" ? '1","name":"other' : '1,"name":"other"';
      await compiling.sql(`alter table public.changing alter column ${column} type text using '${text}'`);
      expect((await compiling.ask(query)).data.changing.name).toBe("original");
    },
  );

  test("does not fail operations that name other columns", async () => {
    let isOver = false;
    const answers: unknown[] = [];
    const asking = (async () => {
      while (!isOver) answers.push((await compiling.ask("{ thing(id: 2) { id name } }")).data);
    })();
    await compiling.sql("alter table public.things add column later text");
    await sleep(200);
    isOver = true;
    await asking;
    expect(new Set(answers.map((answer) => JSON.stringify(answer)))).toEqual(
      new Set([JSON.stringify({ thing: { id: "2", name: "thing 2" } })]),
    );
  });
});
