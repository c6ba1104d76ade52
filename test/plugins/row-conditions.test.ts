import { type GraphQLObjectType, getNamedType, isInputObjectType, isLeafType } from "grafast/graphql";
import { expect, test } from "vitest";
import { anonymous } from "../db/callers.ts";
import { useGeneratedSchema } from "./generated-schema.ts";

const VALUES: Readonly<Record<string, string>> = {
  int2: "1",
  int4: "1",
  int8: "9007199254740993",
  float4: "1.5",
  float8: "1.5",
  numeric: "1.50",
  money: "3.50",
  oid: "4000000000",
  date: "2026-01-02",
  time: "03:04:05.000006",
  timetz: "03:04:05+02",
  timestamp: "2026-01-02 03:04:05.000006",
  timestamptz: "2026-01-02 03:04:05.000006+00",
  interval: "1 day 02:03:04",
  uuid: "00000000-0000-0000-0000-00000000000a",
  inet: "10.0.0.1/8",
  cidr: "10.0.0.0/8",
  macaddr: "08:00:2b:01:02:03",
  macaddr8: "08:00:2b:01:02:03:04:05",
  bytea: "\\x00ff",
  "bit(3)": "101",
  varbit: "101",
  pg_lsn: "16/B374D848",
  xid8: "12",
  text: "it's",
  varchar: "a%",
  "char(5)": "ab",
  name: "ab",
  bool: "t",
  jsonb: '{"a": [1]}',
  int4range: "[1,5)",
  numrange: "[1.5,2.5]",
  daterange: "[2026-01-01,2026-02-01)",
  tstzrange: "[2026-01-01 00:00+00,2026-02-01 00:00+00)",
  "int4[]": "{1,2}",
  "text[]": '{a,"b c"}',
  "uuid[]": "{00000000-0000-0000-0000-00000000000a}",
  "timestamptz[]": '{"2026-01-02 03:04:05+00"}',
  "public.positive": "3",
  "public.word": "ab",
  "public.mood": "glad",
  "public.mood[]": "{glad}",
};
const columns = Object.entries(VALUES).map(([type, value], index) => ({ name: `c${index}`, type, value }));

const generated = useGeneratedSchema({
  template: "empty",
  sql: `
    create type public.mood as enum ('sad', 'glad');
    create domain public.positive as int check (value > 0);
    create domain public.word as text;
    create table public.rows_of_all_types (id int primary key, ${columns.map(({ name, type }) => `${name} ${type}`)});

    grant select on public.rows_of_all_types to anon;
    insert into public.rows_of_all_types values (1, ${columns.map(({ value }) => `'${value.replaceAll("'", "''")}'`)});
    insert into public.rows_of_all_types values (2);`,
});

/** Returns all fields of a value, for types that are objects. */
function selectionOf(type: unknown): string {
  const named = getNamedType(type as GraphQLObjectType);
  if (isLeafType(named)) return "";
  const fields = Object.values((named as GraphQLObjectType).getFields());
  return ` { ${fields.map((field) => `${field.name}${selectionOf(field.type)}`).join(" ")} }`;
}

const WITH_THE_VALUE = ["eq", "gte", "lte", "cs", "cd"];

test.each(columns)("a value of type $type meets the operators for equal values", async ({ name }) => {
  const { schema } = generated;
  const row = schema.getType("RowsOfAllType") as GraphQLObjectType;
  const query = `{ rowsOfAllTypes(where: { id: { eq: 1 } }) { edges { node { ${name}${selectionOf(row.getFields()[name]!.type)} } } } }`;
  const { rowsOfAllTypes } = await generated.read(anonymous, query);
  const value = rowsOfAllTypes.edges[0].node[name];

  const where = schema.getType("RowsOfAllTypeWhereInput");
  if (!isInputObjectType(where)) throw new TypeError("There is no where input");
  const operators = getNamedType(where.getFields()[name]!.type);
  if (!isInputObjectType(operators)) throw new TypeError("There are no operators");
  const offered = Object.keys(operators.getFields());
  expect(offered).toContain("eq");
  const conditions = [
    ...WITH_THE_VALUE.filter((operator) => offered.includes(operator)).map((operator) => ({ [operator]: value })),
    ...(offered.includes("in") ? [{ in: [value] }] : []),
    { isNull: false },
  ];
  const countOf = async (condition: object) => {
    const { data, faults } = await generated.ask(
      anonymous,
      "query ($where: RowsOfAllTypeWhereInput) { rowsOfAllTypes(where: $where) { totalCount } }",
      { where: { [name]: condition } },
    );
    return faults.length > 0 ? faults : data.rowsOfAllTypes.totalCount;
  };
  for (const condition of conditions) expect([condition, await countOf(condition)]).toEqual([condition, 1]);
  expect(await countOf({ neq: value })).toBe(0);
});
