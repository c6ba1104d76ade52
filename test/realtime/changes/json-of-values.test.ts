import { beforeAll, expect, test } from "vitest";
import type { DataType } from "../../../catalog/data-types.ts";
import { loadCatalog } from "../../../catalog/load-catalog.ts";
import { toJsonText } from "../../../realtime/changes/change-payload.ts";
import { useClient, useDatabase } from "../../database.ts";

const VALUES = [
  ["int8", "9007199254740993"],
  ["numeric", "1.50"],
  ["numeric", "NaN"],
  ["float8", "1e-20"],
  ["float8", "-Infinity"],
  ["bool", "true"],
  ["text", 'a "b" \\ \n ü'],
  ["json", '{"a": [1, null]}'],
  ["jsonb", '"text"'],
  ["timestamp", "2026-01-02 03:04:05.678"],
  ["timestamptz", "2026-01-02 03:04:05+05:30"],
  ["timestamptz", "infinity"],
  ["timestamptz", "0044-03-15 12:00:00+00 BC"],
  ["timestamp", "0044-03-15 12:00:00 BC"],
  ["date", "2026-01-02"],
  ["uuid", "8c3f1c64-7a4b-4b9e-8a55-1b2c3d4e5f60"],
  ["bytea", "\\x00ff"],
  ["interval", "1 day 2 hours"],
  ["int4range", "[1,5)"],
  ["inet", "10.0.0.1"],
  ["int4[]", "{1,NULL,3}"],
  ["int4[]", "{}"],
  ["int4[]", "[2:3]={1,2}"],
  ["int4[]", "{{1,2},{3,4}}"],
  ["text[]", '{"a,b","NULL",NULL,"\\"q\\" \\\\",""}'],
  ["jsonb[]", '{"{\\"a\\": 1}"}'],
  ["timestamptz[]", '{"2026-01-02 00:00:00+00"}'],
  ["box[]", "{(1,1),(0,0);(2,2),(1,1)}"],
  ["public.area[]", "{(1,1),(0,0);(2,2),(1,1)}"],
  ["int2vector", "1 2 3"],
  ["oidvector", ""],
  ["public.mood", "happy"],
  ["public.positive", "7"],
  ["public.place", '(1,"a ""b"", (c)",,"{x,NULL}")'],
  ["public.place[]", '{"(1,x,t,{})",NULL}'],
] as const;

let typeOf: (name: string) => DataType;

const database = useDatabase({
  template: "empty",
  sql: `
    set timezone = 'UTC';
    create type public.mood as enum ('happy');
    create domain public.positive as int check (value > 0);
    create domain public.area as box;
    create type public.place as (id int, name text, seen bool, tags text[])`,
});
const client = useClient(database.ownerUrl);
beforeAll(async () => {
  const columns = VALUES.map(([type], at) => `c${at} ${type}`);
  await client.query(`create table public.everything (${columns})`);
  const { catalog } = await loadCatalog(client, { schemas: ["public"], extraSearchPath: [], loginRole: "postgres" });
  const table = catalog.findTable({ schema: "public", name: "everything" })!;
  typeOf = (name) => table.columns.get(name)!.type;
});

test.each(VALUES.map(([type, value], at) => ({ type, value, column: `c${at}` })))(
  "$type $value is written as to_jsonb writes it",
  async ({ type, value, column }) => {
    const { rows } = await client.query(
      `select concat($1::text::${type}) as text, to_json($1::text::${type})::text as json`,
      [value],
    );
    expect(JSON.parse(toJsonText(rows[0].text, typeOf(column)))).toEqual(JSON.parse(rows[0].json));
  },
);
