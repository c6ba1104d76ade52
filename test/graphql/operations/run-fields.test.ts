import { describe, expect, test } from "vitest";
import { useDatabase } from "../../database.ts";
import { useFixture } from "../../fixture.ts";
import { serveGraphQL } from "../../graphql.ts";
import { BY_GRAFAST } from "../grafast/grafast-stages.ts";

const ROWS = `
  create table public.shops (id int primary key, name text not null);
  insert into public.shops select n, 'shop ' || n from generate_series(1, 5) as n;
  create table public.items (id int primary key, shop_id int references public.shops, label text);
  insert into public.items values (1, 1, 'pen'), (2, 1, 'ink');
  create index on public.items (shop_id);
  create schema hidden;
  grant usage on schema hidden to anon;
  create table hidden.owners (name text);
  alter table public.items enable row level security;
  create policy owners on public.items using (exists (select from hidden.owners));
  create function public.failing() returns int language plpgsql stable as $$
    begin raise exception 'Not today' using errcode = 'P0001'; end $$;
  create function public.asleep() returns int language sql stable as 'select 1 from pg_sleep(60)';
  create function public.length_of(word text) returns interval language sql stable as 'select make_interval(hours => length(word))';
  create function public.make_words(word text) returns text[] language sql volatile as 'select array[word, upper(word)]';
  create function public.do_nothing() returns void language sql volatile as '';
  create function public.say_nothing() returns text language sql volatile as 'select null::text';
  create function public.add_no_shop() returns public.shops language sql volatile as 'select null::public.shops';
  create domain public.span as interval;
  create table public.waits (id int primary key, span public.span, numbers float8[]);
  insert into public.waits values (1, '1 day 2 hours', '{1,NaN}');
  create table public.deliveries (id int generated always as identity primary key, item_id int references public.items, spare_id int references public.items, label text);
  create function public.newest() returns public.deliveries language sql stable as 'select null::public.deliveries';
  create table public.remarks (text text);
  create view public.saying as select text from public.remarks;
  create view public.ruling as select text from public.remarks;
  create rule insert_remark as on insert to public.ruling do instead insert into public.remarks values (new.text);
  grant select, insert on public.remarks, public.saying, public.ruling to anon;
  grant usage on schema public to anon;
  grant select, insert on public.shops, public.items, public.deliveries to anon;
  grant select on public.waits to anon;
  grant execute on all functions in schema public to anon`;

const SETTINGS = { ADMIN_PORT: "0", GRAPHQL_STATEMENT_TIMEOUT_SECONDS: "1", MAX_ANSWER_BYTES: "1048576" };

const database = useDatabase({ template: "empty" });
const compiling = useFixture(() => serveGraphQL({ database, settings: SETTINGS, before: ROWS }));
const plain = useFixture(() => serveGraphQL({ database, settings: SETTINGS, options: BY_GRAFAST }));

/** The answer, which Grafast gives too. */
async function sameAnswer(query: string, variables?: Readonly<Record<string, unknown>>) {
  const request = variables && { variables };
  const { data, errors } = await compiling.ask(query, request);
  const other = await plain.ask(query, request);
  expect({ data, errors }).toEqual({ data: other.data, errors: other.errors });
  return { data, errors };
}

describe("a query of which one field fails", () => {
  test("has the data of the others, and the error at its path", async () => {
    const { data, errors } = await sameAnswer("{ failing shop(id: 1) { name } again: failing __typename }");
    expect(data).toEqual({ failing: null, shop: { name: "shop 1" }, again: null, __typename: "Query" });
    expect(errors).toMatchObject([
      { path: ["failing"], message: "Not today" },
      { path: ["again"], message: "Not today" },
    ]);
  });

  test("has introspection beside data and errors", async () => {
    const { data, errors } = await sameAnswer(
      '{ failing __type(name: "Shop") { name } shop(id: 2) { name } __schema { queryType { name } } }',
    );
    expect(data).toEqual({
      failing: null,
      __type: { name: "Shop" },
      shop: { name: "shop 2" },
      __schema: { queryType: { name: "Query" } },
    });
    expect(errors).toMatchObject([{ path: ["failing"] }]);
  });

  test("has the error of a limit at each field that has exceeded it, and at those after two of them", async () => {
    const { data, errors } = await compiling.ask("{ a: asleep b: asleep c: asleep d: asleep __typename }");
    expect(data).toEqual({ a: null, b: null, c: null, d: null, __typename: "Query" });
    expect(errors).toMatchObject(["a", "b", "c", "d"].map((key) => ({ path: [key], extensions: { code: "TIMEOUT" } })));
  });
});

describe("equal calls of a function", () => {
  test("fail each by itself, of which Grafast reads all parts by one statement", async () => {
    const query = "{ newest { id item { id } } again: newest { id } }";
    const [compiled, byGrafast] = [await compiling.ask(query), await plain.ask(query)];
    expect(compiled.data).toEqual(byGrafast.data);
    expect(compiled.errors).toMatchObject([{ path: ["newest"] }]);
    expect(byGrafast.errors).toMatchObject([{ path: ["newest"] }, { path: ["again"] }]);
  });
});

describe("a value without a form in GraphQL", () => {
  test("is an error at its place", async () => {
    const one = await sameAnswer("{ wait(id: 1) { id numbers } }");
    expect(one.data).toEqual({ wait: { id: "1", numbers: [1, null] } });
    expect(one.errors).toMatchObject([{ path: ["wait", "numbers", 1], extensions: { code: "VALIDATION_ERROR" } }]);
  });

  test("is none for objects of domains and of functions", async () => {
    const { data, errors } = await sameAnswer(
      '{ wait(id: 1) { span { days hours } } lengthOf(word: "four") { hours } }',
    );
    expect(errors).toBeUndefined();
    expect(data).toEqual({ wait: { span: { days: 1, hours: 2 } }, lengthOf: { hours: 4 } });
  });
});

describe("a page", () => {
  test("may be bounded by cursors on both sides", async () => {
    const all = (await sameAnswer("{ shops(first: 5) { edges { cursor } } }")).data.shops.edges;
    const [after, , , before] = all.map(({ cursor }: { readonly cursor: string }) => cursor);
    const query = `query ($first: Int, $last: Int, $after: String, $before: String) {
      shops(first: $first, last: $last, after: $after, before: $before) { edges { node { id } } totalCount } }`;
    const idsOf = async (variables: Readonly<Record<string, unknown>>) => {
      const { data, errors } = await compiling.ask(query, { variables });
      expect(errors).toBeUndefined();
      expect(data.shops.totalCount).toBe(5);
      return data.shops.edges.map(({ node }: { readonly node: { readonly id: string } }) => node.id);
    };
    expect(await idsOf({ first: 5, after, before })).toEqual(["2", "3"]);
    expect(await idsOf({ first: 1, after, before })).toEqual(["2"]);
    expect(await idsOf({ last: 1, after, before })).toEqual(["3"]);
  });

  test("is refused for a cursor that is none, with the reason", async () => {
    const { errors } = await sameAnswer('{ shops(after: "nonsense") { totalCount edges { cursor } } }');
    expect(errors).toMatchObject([{ path: ["shops"], extensions: { code: "VALIDATION_ERROR" } }]);
  });
});

describe("a mutation", () => {
  test("whose result cannot be read in part is done, and has the error at that part", async () => {
    const query = (id: number) => `mutation { createShop(input: { id: ${id}, name: "new" }) { id items { id } } }`;
    const { data, errors } = await compiling.ask(query(11));
    expect({ data, errors }).toMatchObject({ data: null, errors: [{ path: ["createShop", "items"] }] });
    expect(await compiling.sql("select id from public.shops where id = 11")).toHaveLength(1);
    expect((await plain.ask(query(12))).errors).toMatchObject([{ path: ["createShop", "items"] }]);
  });

  test("has an error at each part of its result that cannot be read, and is done once", async () => {
    const query = `mutation { createDelivery(input: { itemId: 1, spareId: 2 }) { itemId item { id } again: item { label } spare { id } shown: __typename } }`;
    const { data, errors } = await compiling.ask(query);
    expect(data).toEqual({
      createDelivery: { itemId: "1", item: null, again: null, spare: null, shown: "Delivery" },
    });
    const keys = ["item", "again", "spare"];
    expect(errors).toMatchObject(keys.map((key) => ({ path: ["createDelivery", key] })));
    expect(await compiling.sql("select id from public.deliveries")).toHaveLength(1);
    const byGrafast = await plain.ask(query);
    expect({ data, errors }).toEqual({ data: byGrafast.data, errors: byGrafast.errors });
  });

  test("has the budget of one answer, however often its parts are read", async () => {
    // Half of the answers of anonymous callers, who have half of a quarter of MAX_ANSWER_BYTES.
    const label = "x".repeat(80_000);
    const query =
      "mutation ($label: String) { createDelivery(input: { label: $label }) { label item { id } spare { id } } }";
    const { data, errors } = await compiling.ask(query, { variables: { label } });
    expect(data).toEqual({ createDelivery: { label, item: null, spare: null } });
    expect(errors).toMatchObject([{ path: ["createDelivery", "item"] }, { path: ["createDelivery", "spare"] }]);
  });

  test("with @transaction whose result cannot be read has changed nothing", async () => {
    const query = 'mutation @transaction { createShop(input: { id: 13, name: "new" }) { id items { id } } }';
    const { data, errors } = await compiling.ask(query);
    expect(data).toBeNull();
    expect(errors).toMatchObject([
      { path: ["createShop", "items"] },
      { extensions: { code: "TRANSACTION_ROLLED_BACK" } },
    ]);
    expect(await compiling.sql("select id from public.shops where id = 13")).toEqual([]);
  });

  test.each(["sayNothing", "addNoShop { id }"])(
    "that returns null where it returns something else: %s",
    async (field) => {
      const { data, errors } = await sameAnswer(`mutation { ${field} }`);
      expect(data).toBeNull();
      const [name] = field.split(" ");
      expect(errors).toMatchObject([
        {
          path: [name],
          message: `Cannot return null for non-nullable field Mutation.${name}.`,
          extensions: { code: "RESOURCE_NOT_FOUND" },
        },
      ]);
    },
  );

  test("may call functions that return lists and nothing", async () => {
    const { data, errors } = await sameAnswer('mutation { makeWords(input: { word: "a" }) doNothing }');
    expect(errors).toBeUndefined();
    expect(data).toEqual({ makeWords: ["a", "A"], doNothing: true });
  });
});

describe("a write to a view whose columns may all be null", () => {
  test("returns the row, even a row of nulls", async () => {
    const fields = "{ __typename text }";
    const { data } = await sameAnswer(
      `mutation { one: createSaying(input: { text: "a" }) ${fields} two: createSaying(input: { text: null }) ${fields} }`,
    );
    expect(data).toEqual({
      one: { __typename: "Saying", text: "a" },
      two: { __typename: "Saying", text: null },
    });
  });

  test("is done once where a rule does it and returns no row, unless columns of the row are selected", async () => {
    const { data } = await sameAnswer('mutation { createRuling(input: { text: "b" }) { __typename } }');
    expect(data).toEqual({ createRuling: { __typename: "Ruling" } });
    const refused = await compiling.ask('mutation { createRuling(input: { text: "b" }) { text } }');
    expect(refused.errors).toMatchObject([{ path: ["createRuling"], extensions: { code: "INTERNAL_ERROR" } }]);
    const { data: rest } = await sameAnswer("{ remarks(limit: 100) { text } }");
    const inserted = rest?.remarks as readonly { readonly text: string | null }[];
    // Each of the two services has inserted one.
    expect(inserted.filter(({ text }) => text === "b")).toHaveLength(2);
  });
});
