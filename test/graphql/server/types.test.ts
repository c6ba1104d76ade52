import { expect, test } from "vitest";
import { useFixture } from "../../fixture.ts";
import { serveGraphQL } from "../../graphql.ts";

/** For each column, its type in SQL, the value that a client sends, and the value that it gets back if that is another one. */
const COLUMNS: Readonly<Record<string, readonly [type: string, sent: unknown, told?: unknown]>> = {
  small: ["smallint", 7],
  plain: ["integer", -7],
  large: ["bigint", "9007199254740993"],
  exact: ["numeric", "123456789012345678901234567890.5"],
  rough: ["double precision", 0.1],
  flag: ["boolean", true],
  unset: ["boolean", false],
  words: ["text", 'Ünï "quoted" \\ {x}'],
  chars: ["varchar(20)", "short"],
  key: ["uuid", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"],
  document: ["jsonb", { a: [1, null, "ß"], b: { c: true } }],
  list: ["text[]", ["a,b", 'c"d', "", "NULL"]],
  numbers: ["integer[]", [1, 2, 3]],
  flags: ["boolean[]", [true, false]],
  moment: ["timestamptz", "2026-01-02T03:04:05.678+02:00", "2026-01-02T01:04:05.678Z"],
  day: ["date", "2026-01-02"],
};

const names = Object.keys(COLUMNS);
const columns = Object.entries(COLUMNS).map(([name, [type]]) => `${name} ${type}`);
const graphql = useFixture(() =>
  serveGraphQL({
    before: `
      create table public.samples (id bigint generated always as identity primary key, ${columns});
      grant select, insert (${names}) on public.samples to anon`,
  }),
);

const result = Object.fromEntries(Object.entries(COLUMNS).map(([name, [, sent, other]]) => [name, other ?? sent]));

test("values of every type are returned as they were sent", async () => {
  const input = Object.fromEntries(Object.entries(COLUMNS).map(([name, [, sent]]) => [name, sent]));
  const query = `mutation ($input: CreateSampleInput!) { createSample(input: $input) { id ${names.join(" ")} } }`;
  const { data, errors } = await graphql.ask(query, { variables: { input } });
  expect(errors).toBeUndefined();
  expect(data.createSample).toEqual({ id: "1", ...result });
  const again = await graphql.ask(`{ sample(id: 1) { ${names.join(" ")} } }`);
  expect(again.data.sample).toEqual(result);
});

test("null stays null", async () => {
  const query = `mutation { createSample(input: {plain: 1}) { ${names.join(" ")} } }`;
  const { data } = await graphql.ask(query);
  expect(data.createSample).toEqual({ ...Object.fromEntries(names.map((name) => [name, null])), plain: 1 });
});
