import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { useClient, useDatabase } from "../../database.ts";
import { useFixture } from "../../fixture.ts";
import { propertyRuns } from "../../property-runs.ts";
import { useService } from "../../serve.ts";
import { ANN, BOB, CALLERS } from "../callers.ts";
import { type Claims, openClient } from "./client.ts";

const SCHEMA = `
  create table public.goods (
    shop text, id integer, name text not null default 'unnamed', amount smallint check (amount >= -50), price numeric(8, 2), rough float8,
    large bigint, tags text[], numbers integer[], data jsonb, plain json, due timestamptz, span interval, day date, owner text,
    primary key (shop, id)
  );
  alter table public.goods enable row level security;
  create policy readable on public.goods for select using (shop <> 'closed' or auth.role() = 'admin');
  create policy changed on public.goods for update using (owner = coalesce(auth.uid()::text, 'nobody') or auth.role() = 'admin')
    with check (amount is null or amount < 1000);
  grant select on public.goods to anon, authenticated, service_role;
  grant update on public.goods to authenticated, service_role;
  grant update (name, amount, tags, data) on public.goods to anon;
`;
const SEED = `
  truncate public.goods;
  insert into public.goods
  select shop, id, 'name ' || id, nullif(id % 5, 0), nullif(id % 3, 1) * 1.25, nullif(id % 4, 2) / 3.0, nullif(id % 2, 0) * 9007199254740993,
    case id % 3 when 0 then '{a,b,a}'::text[] when 1 then '{}' end, case id % 2 when 0 then '{1,2}'::int[] end,
    case id % 4 when 0 then '{"a": 1, "b": {"c": 2}}'::jsonb when 1 then '[1, "a"]' when 2 then '{}' end,
    case id % 2 when 0 then '{"a": 1.50}'::json end, '2026-01-01Z'::timestamptz + id * interval '1 day', nullif(id % 3, 0) * interval '1 hour',
    '2026-01-01'::date + id, (array['nobody', '${ANN}', '${BOB}', null])[id % 4 + 1]
  from unnest(array['open', 'closed']) shop, generate_series(1, 8) id`;

const database = useDatabase({ sql: SCHEMA });
const owner = useClient(database.ownerUrl);
const caller = useClient(database.url);
const service = useService({ database });
const client = useFixture(() => openClient(service.url));

type Change = { readonly json: unknown; readonly sql: string; readonly value: unknown };
type Element = { readonly shop: string; readonly id: number; readonly changes: Readonly<Record<string, Change>> };

/** A value as the new one: `null` also where it is not allowed. */
const plain = (column: string, type: string, values: fc.Arbitrary<unknown>, isJson = false) =>
  fc.option(values).map(
    (value): Change => ({
      json: value,
      sql: `${column} = $::${type}`,
      value: isJson && value !== null ? JSON.stringify(value) : value,
    }),
  );
const operation = (name: string, sql: string, values: fc.Arbitrary<unknown>, toValue = (value: unknown) => value) =>
  values.map((value): Change => ({ json: { [name]: value }, sql, value: toValue(value) }));

const small = fc.integer({ min: -60, max: 1_100 });
const fraction = fc.integer({ min: -500, max: 500 }).map((n) => n / 100);
const word = fc.constantFrom("a", "b", "zz", 'with "quotes"', "");
const words = fc.array(word, { maxLength: 3 });
const members = fc.dictionary(fc.constantFrom("a", "b", "d"), fc.oneof(word, small, fc.constant(null)), { maxKeys: 2 });
const toJson = (value: unknown) => JSON.stringify(value);
const toItems = (value: unknown) => JSON.stringify(Array.isArray(value) ? value : [value]);
const toList = (value: unknown) => (Array.isArray(value) ? value : [value]);

/** Each operator, and the SQL that somebody would write for it. */
const CHANGES: Readonly<Record<string, fc.Arbitrary<Change>>> = {
  name: fc.oneof(
    plain("name", "text", word),
    operation("$min", "name = case when name < $ then name else $ end", word),
    operation("$max", "name = case when name > $ then name else $ end", word),
  ),
  amount: fc.oneof(
    plain("amount", "smallint", small),
    operation("$inc", "amount = case when amount is null then $::smallint else amount + $::smallint end", small),
    operation("$mul", "amount = (amount * $::numeric)::smallint", fraction),
    operation("$max", "amount = case when amount > $::smallint then amount else $::smallint end", small),
  ),
  price: fc.oneof(
    plain("price", "numeric", fraction),
    operation("$inc", "price = (case when price is null then 0 else price end) + $::numeric", fraction),
    operation("$mul", "price = price * $::numeric", fraction),
  ),
  rough: fc.oneof(
    plain("rough", "float8", fraction),
    operation("$inc", "rough = (case when rough is null then 0 else rough end) + $::float8", fraction),
    operation("$mul", "rough = rough * $::float8", fraction),
  ),
  large: operation("$inc", "large = case when large is null then $::bigint else large + $::bigint end", small),
  tags: fc.oneof(
    plain("tags", "text[]", words),
    operation(
      "$append",
      "tags = case when tags is null then $::text[] else tags || $::text[] end",
      fc.oneof(words, word),
      toList,
    ),
    operation(
      "$prepend",
      "tags = case when tags is null then $::text[] else $::text[] || tags end",
      fc.oneof(words, word),
      toList,
    ),
    operation("$remove", "tags = array_remove(tags, $::text)", word),
  ),
  numbers: operation(
    "$append",
    "numbers = case when numbers is null then $::int[] else numbers || $::int[] end",
    fc.array(small, { maxLength: 2 }),
  ),
  data: fc.oneof(
    plain("data", "jsonb", members, true),
    operation("$merge", "data = case when data is null then $::jsonb else data || $::jsonb end", members, toJson),
    operation(
      "$append",
      "data = case when data is null then $::jsonb else data || $::jsonb end",
      fc.oneof(words, members),
      toItems,
    ),
    operation("$unset", "data = data - $::text[]", words, toList),
  ),
  plain: operation(
    "$merge",
    "plain = (case when plain is null then '{}' else plain::jsonb end || $::jsonb)::json",
    members,
    toJson,
  ),
  due: operation("$inc", "due = due + $::interval", fc.constantFrom("1 day", "-2 hours", "P1M")),
  span: operation("$inc", "span = span + $::interval", fc.constantFrom("1 day", "-2 hours")),
  day: operation(
    "$max",
    "day = case when day > $::date then day else $::date end",
    fc.constantFrom("2026-01-04", "2025-01-01"),
  ),
};

/** All elements have the same columns, as all rows of a payload. */
const elements = fc.subarray(Object.keys(CHANGES), { minLength: 1, maxLength: 4 }).chain((columns) =>
  fc.uniqueArray(
    fc.record({
      shop: fc.constantFrom("open", "closed"),
      id: fc.integer({ min: 1, max: 10 }),
      changes: fc.record(Object.fromEntries(columns.map((column) => [column, CHANGES[column]!]))),
    }),
    { minLength: 1, maxLength: 6, selector: ({ shop, id }) => `${shop} ${id}` },
  ),
) as fc.Arbitrary<Element[]>;

const stateOf = async () => (await owner.query("select g::text from public.goods g order by shop, id")).rows;

type Outcome = { readonly rows: unknown; readonly state: unknown };

async function send(list: readonly Element[], as: Claims): Promise<Outcome> {
  const body = list.map(({ shop, id, changes }) => ({
    ...{ shop, id },
    ...Object.fromEntries(Object.entries(changes).map(([column, { json }]) => [column, json])),
  }));
  const headers = { Prefer: "operators, return=representation" };
  const answer = await client.ask("/goods?select=shop,id,name,amount", { method: "PATCH", body, headers, as });
  return { rows: answer.status === 200 ? answer.body : null, state: await stateOf() };
}

/** Runs one UPDATE after the other, as somebody would write them. */
async function updateOneByOne(list: readonly Element[], claims: Claims): Promise<Outcome> {
  const rows: unknown[] = [];
  await caller.query("begin");
  try {
    await caller.query("select set_config('role', $1, true), set_config('request.jwt.claims', $2, true)", [
      claims.role,
      JSON.stringify(claims),
    ]);
    for (const { shop, id, changes } of list) {
      const values: unknown[] = [shop, id];
      const set = Object.values(changes).map(({ sql, value }) => sql.replaceAll("$", `$${values.push(value)}`));
      const statement = `update public.goods set ${set.join(", ")} where shop = $1 and id = $2 returning shop, id, name, amount`;
      rows.push(...(await caller.query(statement, values)).rows);
    }
    await caller.query("commit");
    return { rows, state: await stateOf() };
  } catch {
    await caller.query("rollback");
    return { rows: null, state: await stateOf() };
  }
}

describe("a PATCH with a list and operators", () => {
  test("changes the rows, or is refused, as plain updates one after the other", async () => {
    const outcomes = { changed: 0, unchanged: 0, refused: 0 };
    const property = fc.asyncProperty(elements, fc.constantFrom(...CALLERS), async (list, claims) => {
      await owner.query(SEED);
      const expected = await updateOneByOne(list, claims);
      await owner.query(SEED);
      expect(await send(list, claims)).toEqual(expected);
      const { rows } = expected;
      outcomes[rows === null ? "refused" : (rows as unknown[]).length > 0 ? "changed" : "unchanged"] += 1;
    });
    await fc.assert(property, { numRuns: propertyRuns(1_000) });
    expect(Math.min(...Object.values(outcomes)), JSON.stringify(outcomes)).toBeGreaterThan(0);
  });
});
