import { beforeAll, describe, expect, test } from "vitest";
import { parseJsonExactly } from "../../../runtime/json/json-values.ts";
import { useFixture } from "../../fixture.ts";
import { serveGraphQL } from "../../graphql.ts";

/** For each type that a column can have, values that change if they are not passed on exactly. */
const VALUES: Readonly<Record<string, readonly string[]>> = {
  aclitem: ["anon=r/postgres"],
  bit: ["1"],
  bool: ["t", "f"],
  box: ["(2,2),(1,1)", "(0.1,1e+20),(-3,0)"],
  bpchar: ["a ", ""],
  bytea: ["\\x00ff5c", "\\x"],
  char: ["x"],
  cid: ["4294967295"],
  cidr: ["10.0.0.0/8", "2001:db8::/32"],
  circle: ["<(1,2),3.5>"],
  date: ["2026-01-02", "infinity", "0044-03-15 BC", "12345-01-01"],
  datemultirange: ["{[2026-01-01,2026-01-03),[2027-01-01,)}"],
  daterange: ["[2026-01-01,2026-01-03)", "(,2026-01-03)", "(,)"],
  float4: ["1.5", "1e+20", "1e-20", "16777216"],
  float8: ["0.1", "1e+300", "-0.30000000000000004", "9007199254740993"],
  inet: ["10.0.0.1", "10.0.0.1/8", "::1", "10.0.0.1/32"],
  int2: ["-32768"],
  int2vector: ["1 2 3"],
  int4: ["-2147483648"],
  int4multirange: ["{[1,3),[5,)}"],
  int4range: ["[1,5)", "(,5)", "(,)"],
  int8: ["9223372036854775807"],
  int8multirange: ["{[1,9223372036854775807)}"],
  int8range: ["[9007199254740993,9223372036854775807)"],
  interval: [
    "1 year 2 mons -3 days 04:05:06.789",
    "-00:00:01.25",
    "-00:00:42.099608",
    "178000000 years",
    "00:00:00.000001",
  ],
  json: ['{"a":1.50,"b":98765432109876543210}'],
  jsonb: ['{"a": 1.50, "b": 98765432109876543210}', '"x"', "[1e-7]"],
  jsonpath: ['$."a"?(@ > 1)'],
  line: ["{1,-1,0}", "{0.5,2,3}"],
  lseg: ["[(1,2),(3,4)]"],
  macaddr: ["08:00:2b:01:02:03"],
  macaddr8: ["08:00:2b:01:02:03:04:05"],
  money: ["$36,000.10", "-$92,233,720,368,547,758.08"],
  name: ["a_name"],
  numeric: ["123456789012345678901234567890.50", "NaN", "Infinity", "1.0"],
  nummultirange: ["{[1.50,2.5),(3,)}"],
  numrange: ["[1.50,2.5)", "(,3]"],
  oid: ["4294967295"],
  oidvector: ["1 2 4294967295"],
  path: ["[(0,0),(1,1),(2,0)]", "((0,0),(1,1),(2,0))"],
  pg_lsn: ["16/B374D848"],
  pg_snapshot: ["10:20:10,14,15"],
  point: ["(0.1,-2)", "(1e+20,3)"],
  polygon: ["((0,0),(1,1),(2,0))"],
  refcursor: ["a cursor"],
  regclass: ["pg_class"],
  regcollation: ['"C"'],
  regconfig: ["english"],
  regdictionary: ["simple"],
  regnamespace: ["pg_catalog"],
  regoper: ["pg_catalog.||/"],
  regoperator: ["*(integer,integer)"],
  regproc: ["now"],
  regprocedure: ["abs(numeric)"],
  regrole: ["anon"],
  regtype: ["character varying"],
  text: ['Ünï "quoted" \\ {x}', "", "null"],
  tid: ["(1,2)"],
  time: ["03:04:05.678901", "24:00:00", "00:00:00"],
  timestamp: ["2026-01-02 03:04:05.678901", "infinity", "0044-03-15 00:00:00 BC", "12345-01-01 00:00:00"],
  timestamptz: ["2026-01-02 03:04:05.678901+00", "-infinity", "0044-03-15 00:00:00+00 BC", "2026-01-02 03:04:05+00"],
  timetz: ["03:04:05.678901+02", "24:00:00-05:30"],
  tsmultirange: ['{["2026-01-01 00:00:00","2026-02-01 00:00:00.5")}'],
  tsquery: ["'fat' & ( 'rat' | 'cat':AB )", "!'a b'"],
  tsrange: ['["2026-01-01 00:00:00","2026-02-01 00:00:00.000001")', "(,infinity)"],
  tstzmultirange: ['{["2026-01-01 00:00:00+00","2026-02-01 00:00:00.5+00")}'],
  tstzrange: ['["2026-01-01 00:00:00+00","2026-02-01 00:00:00.000001+00")'],
  tsvector: ["'a':1A 'fat':2,4B 'it''s'"],
  txid_snapshot: ["10:20:10,14,15"],
  uuid: ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"],
  varbit: ["101", ""],
  varchar: ["short"],
  xid: ["4294967295"],
  xid8: ["18446744073709551615"],
  xml: ["<a>b</a>"],
};

/** The types of extensions with the same names. */
const OF_EXTENSIONS: Readonly<Record<string, readonly string[]>> = {
  citext: ["Ann", ""],
  cube: ["(1, 2),(3, 4.5)"],
  hstore: ['"a"=>"1", "b"=>NULL, "c d"=>"\\"x\\""', ""],
  ltree: ["Top.Science", ""],
  seg: ["1.0 .. 2.50"],
};

/** No value of these can be written. */
const UNWRITTEN: ReadonlySet<string> = new Set([
  "gtsvector",
  "pg_brin_bloom_summary",
  "pg_brin_minmax_multi_summary",
  "pg_dependencies",
  "pg_mcv_list",
  "pg_ndistinct",
  "pg_node_tree",
]);

const ALL = { ...VALUES, ...OF_EXTENSIONS };
const tables = Object.entries(ALL).map(
  ([type, values]) => `
      create domain public.own_${type} as "${type}";
      create table public.${tableOf(type)} (
        id int generated always as identity primary key, value "${type}", list "${type}"[], own public.own_${type}
      );
      insert into public.${tableOf(type)} (value, list, own)
        select value, array[value, null, value], value from unnest(array[${values.map(literal)}]) with ordinality as text (text, at),
          cast(text as "${type}") as value order by at;`,
);
const graphql = useFixture(() =>
  serveGraphQL({
    template: "empty",
    settings: { REST_REQUIRE_APIKEY: "false" },
    before: `
      grant usage on schema public to anon;
      ${Object.keys(OF_EXTENSIONS)
        .map((name) => `create extension ${name};`)
        .join("")}
      ${tables.join("")}
      grant select, insert on all tables in schema public to anon`,
  }),
);

/** Returns a name without digits, which names of GraphQL treat as ends of words. */
function tableOf(type: string): string {
  return `of_${type.replace(/[\d_]/g, (sign) => (sign === "_" ? "x" : "abcdefghij"[Number(sign)]!))}`;
}

function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

test("each type that a column can have is among them", async () => {
  const rows = await graphql.sql<{ name: string }>(`
    select typname as name from pg_type
    where typnamespace = 'pg_catalog'::regnamespace and typtype in ('b', 'r', 'm') and typcategory <> 'A'`);
  const known = new Set([...Object.keys(VALUES), ...UNWRITTEN]);
  expect(rows.map(({ name }) => name).filter((name) => !known.has(name))).toEqual([]);
});

type Type = { readonly name: string | null; readonly ofType?: Type | null };
type ObjectType = { readonly name: string; readonly fields: readonly { readonly name: string; readonly type: Type }[] };

const SCHEMA = `{ __schema { types { name fields { name type { name ofType { name ofType { name ofType { name } } } } } } } }`;

/** Sends a query, and keeps all digits of numbers in the answer. */
async function ask(query: string, variables: object = {}) {
  const headers = { "Content-Type": "application/json" };
  const answer = await fetch(graphql.url, { method: "POST", headers, body: JSON.stringify({ query, variables }) });
  const { data, errors } = parseJsonExactly(await answer.text()) as { data: Record<string, Row>; errors?: unknown };
  expect(errors).toBeUndefined();
  return data;
}

type Row = Readonly<Record<string, unknown>>;

/** Types whose values GraphQL writes by its own rules: Base64, fractions of seconds, UTC. */
const OTHERWISE: ReadonlySet<string> = new Set(["bytea", "time", "timestamptz"]);
/** Some line is written by other numbers than it was given in. */
const COMPARED: Readonly<Record<string, string>> = { line: "one.value = other.value" };

describe("a value can be sent as it was read, alone, in a list and of a domain, and is spelled as at /rest/v1", () => {
  let types: ReadonlyMap<string, ObjectType>;
  beforeAll(async () => {
    const { data } = await graphql.ask(SCHEMA);
    types = new Map((data.__schema.types as ObjectType[]).map((type) => [type.name, type]));
  });

  const fieldsOf = (type: string) => types.get(type)?.fields ?? [];
  /** A type with all that is in it. */
  const selectionOf = (type: Type): string => {
    if (type.ofType) return selectionOf(type.ofType);
    const fields = fieldsOf(type.name!).map((field) => `${field.name} ${selectionOf(field.type)}`);
    return fields.length > 0 ? `{ ${fields.join(" ")} }` : "";
  };

  test.each(Object.entries(ALL))("%s", async (type, values) => {
    const table = tableOf(type);
    const thing = `O${table.slice(1).replace(/_./, (end) => end[1]!.toUpperCase())}`;
    const name = `o${thing.slice(1)}`;
    expect(
      fieldsOf(thing)
        .map((field) => field.name)
        .sort(),
    ).toEqual(["id", "list", "own", "value"]);
    const selection = selectionOf({ name: thing });
    for (const id of values.keys().map((index) => index + 1)) {
      const { [name]: read } = await ask(`{ ${name}(id: ${id}) ${selection} }`);
      const { value, list, own } = read!;
      expect(value, "a value is there").not.toBeNull();
      expect({ list, own }).toEqual({ list: [value, null, value], own: value });

      const rest = await fetch(`${graphql.service.url}/rest/v1/${table}?id=eq.${id}&select=value`);
      const [row] = parseJsonExactly(await rest.text()) as [Row];
      if (typeof value === "string" && typeof row.value === "string" && !OTHERWISE.has(type)) {
        expect(value).toBe(row.value);
      }

      const query = `mutation ($input: Create${thing}Input!) { create${thing}(input: $input) { id } }`;
      const { [`create${thing}`]: written } = await ask(query, { input: { value, own, list: [value, value] } });
      const is =
        COMPARED[type] ??
        "one.value::text = other.value::text and one.own::text = other.own::text and array[one.value, one.value]::text = other.list::text";
      const [same] = await graphql.sql(
        `select ${is} as same, other.value::text, other.own::text, other.list::text
         from public.${table} one, public.${table} other where one.id = ${id} and other.id = ${String(written!.id)}`,
      );
      expect(same).toMatchObject({ same: true });
    }
  });
});

test("rows are ordered by each column whose type has an order, and by no other", async () => {
  type Input = { readonly name: string; readonly inputFields: readonly { readonly name: string }[] | null };
  const { data } = await graphql.ask(
    `{ __schema { types { name inputFields { name } } } __type(name: "Query") { fields { name type { name ofType { name } } } } }`,
  );
  const { __schema: schema, __type: query } = data;
  const types = schema.types as readonly Input[];
  const unordered: string[] = [];
  for (const type of Object.keys(ALL)) {
    const thing = `O${tableOf(type)
      .slice(1)
      .replace(/_./, (end) => end[1]!.toUpperCase())}`;
    const orders = types.find(({ name }) => name === `${thing}OrderByInput`)!.inputFields!.map(({ name }) => name);
    const columns = orders.filter((name) => name !== "searchRank");
    if (!columns.includes("value")) unordered.push(type);
    const list = query.fields.find(
      (field: ObjectType["fields"][number]) => field.type.ofType?.name === `${thing}Connection`,
    );
    for (const column of columns) {
      const page = await ask(
        `{ ${list.name}(first: 2, orderBy: [{ ${column}: DESC }]) { edges { node { id } } pageInfo { endCursor } } }`,
      );
      expect((page[list.name] as { edges: unknown[] }).edges.length).toBeGreaterThan(0);
    }
  }
  const [has, hasNot] = [
    ["citext", "cube", "int4multirange", "pg_lsn", "tid", "xid8"],
    ["cid", "pg_snapshot", "refcursor", "xid"],
  ];
  expect([...has, ...hasNot].filter((type) => unordered.includes(type))).toEqual(hasNot);
});
