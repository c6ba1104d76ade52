import { readFileSync } from "node:fs";
import { join } from "node:path";
import { getNamedType, getNullableType, isInputObjectType, isLeafType, isObjectType } from "grafast/graphql";
import { describe, expect, test } from "vitest";
import { alice } from "../db/callers.ts";
import { useGeneratedSchema } from "./generated-schema.ts";

const generated = useGeneratedSchema({
  template: "empty",
  schemas: ["public", "shop"],
  sql: readFileSync(join(import.meta.dirname, "clashing-schema.sql"), "utf8"),
});
const read = (source: string, variables?: Record<string, unknown>) => generated.read(alice, source, variables);

function fieldsOf(typeName: string): Record<string, string> {
  const type = generated.schema.getType(typeName);
  if (!isObjectType(type) && !isInputObjectType(type)) return {};
  return Object.fromEntries(Object.entries(type.getFields()).map(([name, { type }]) => [name, String(type)]));
}

/** Returns the fields of a row of such a table, without those that refer to other rows. */
function leavesOf(typeName: string): string {
  const type = generated.schema.getType(typeName);
  if (!isObjectType(type)) throw new TypeError(`There is no object ${typeName}`);
  const leaves = Object.values(type.getFields()).filter(({ type }) => isLeafType(getNamedType(type)));
  return leaves.map(({ name }) => name).join(" ");
}

describe("a table", () => {
  test("is served and can be read, with any names of the table and its columns", async () => {
    const collections = Object.values(generated.schema.getQueryType()!.getFields()).flatMap((field) => {
      const connection = String(getNullableType(field.type));
      // Connections of searches have the rows of another collection.
      if (!connection.endsWith("Connection") || connection.endsWith("SearchResultConnection")) return [];
      return { name: field.name, leaves: leavesOf(connection.replace(/Connection$/, "")) };
    });
    const { rows } = await generated.owner.query(
      "select count(*)::int as n from pg_catalog.pg_tables where schemaname in ('public', 'shop')",
    );
    expect(collections).toHaveLength(rows[0].n);
    for (const { name, leaves } of collections) {
      expect(await read(`{ ${name} { totalCount edges { cursor node { ${leaves} } } } }`)).toHaveProperty(name);
    }
  });

  test("with the name of a Postgres type has another GraphQL type name, and its fields keep theirs", async () => {
    const { lines } = await read(
      "{ lines { edges { node { __typename name a { __typename a { x } } b { __typename b { y } } points { __typename at { __typename x } line { name } } } } } }",
    );
    expect(lines.edges[0].node).toMatchObject({
      __typename: "LineRecord",
      name: "one",
      a: { __typename: "Line" },
      b: { __typename: "LineSegment", b: { y: 1 } },
      points: [{ __typename: "PointRecord", at: { __typename: "Point", x: 1 }, line: { name: "one" } }],
    });
    expect(fieldsOf("Mutation")).toMatchObject({ createLine: "LineRecord!", createInterval: "IntervalRecord!" });
    expect(fieldsOf("Query")).toMatchObject({ date: "DateRecord", dateRange: "DateRangeRecord", path: "PathRecord" });
  });

  test("is served with the name of a GraphQL type, too", () => {
    expect(fieldsOf("Query")).toMatchObject({
      queries: "QueryRecordConnection!",
      mutation: "MutationRecord",
      cursors: "CursorRecordConnection!",
      pageInfo: "PageInfoRecord",
      nodes: "NodeConnection!",
      string: "StringRecord",
      fieldError: "FieldError",
    });
    expect(fieldsOf("CursorRecord")).toEqual({
      id: "ID!",
      cursor: "String",
      node: "String",
      nodeId: "String",
      query: "String",
      _typename: "String",
      clientMutationId: "String",
    });
  });

  test("does not take a name that is derived from another table", () => {
    expect(fieldsOf("Query")).toMatchObject({
      users: "UserConnection!",
      userEdge: "UserEdgeRecord",
      userConnection: "UserConnectionRecord",
      usersEdge: "UsersEdge",
    });
    expect(fieldsOf("CreateUserInput")).toEqual({ name: "String!" });
    expect(fieldsOf("Typed")).toMatchObject({ input: "CreateUserInputType", filter: "UserFilterInputType" });
  });

  test("with the name of another table has that name with a suffix: the older table keeps its name", async () => {
    expect(await read("{ person(id: 1) { id } personRecord(id: 1) { __typename name user { name } } }")).toEqual({
      person: null,
      personRecord: { __typename: "PersonRecord", name: "Ann", user: { name: "Alice" } },
    });
    expect(await read(`{ users { edges { node { people { id } personRecords { name } } } } }`)).toEqual({
      users: { edges: [{ node: { people: [], personRecords: [{ name: "Ann" }] } }] },
    });
    expect(fieldsOf("Query")).toMatchObject({ things: "ThingConnection!", shopThings: "ShopThingConnection!" });
  });

  test("with the name of a table in another schema has a name of its own, prefixed with the schema", () => {
    expect(fieldsOf("Query")).toMatchObject({
      shopThing: "ShopThing",
      shopThingRecord: "ShopThingRecord",
      shopLine: "ShopLine",
    });
  });

  test("with a name that is nothing but the ending of plurals has a list and a row", async () => {
    expect(fieldsOf("Query")).toMatchObject({ allS: "SConnection!", s: "S" });
    expect(await read("{ allS { totalCount } s(id: 1) { id } }")).toEqual({ allS: { totalCount: 1 }, s: { id: "1" } });
  });

  test("without a Latin letter in its name has a name all the same, and so do its columns", async () => {
    expect(fieldsOf("Query")).toMatchObject({
      riBenYus: "RiBenYuConnection!",
      unnamedRecord: "UnnamedRecord2",
      _2: "_2",
    });
    const input = { id: 1, unnamed: "a", unnamed_: "b", unnamed_2: "c", aB: "d", aB_: "e", aB_2: "f" };
    const { createUnnamed } = await read(
      "mutation ($input: CreateUnnamedInput!) { createUnnamed(input: $input) { id unnamed unnamed_ unnamed_2 aB aB_ aB_2 } }",
      { input },
    );
    expect(createUnnamed).toEqual({ ...input, id: "1" });
    expect((await generated.owner.query('select * from public."*"')).rows).toEqual([
      { id: 1, "*": "a", "/": "b", _: "c", "a b": "d", a_b: "e", aB: "f" },
    ]);
  });

  test("that was renamed is written by its new name, also if its key has the name input", async () => {
    expect(await read('mutation { createLine(input: { id: 2, name: "two" }) { __typename name } }')).toEqual({
      createLine: { __typename: "LineRecord", name: "two" },
    });
    expect(await read('mutation { updateLine(id: 2, input: { name: "zwei" }) { name } }')).toEqual({
      updateLine: { name: "zwei" },
    });
    expect(await read("mutation { deleteLine(id: 2) }")).toEqual({ deleteLine: true });
    const [created, updated, deleted] = [
      'mutation { done: createTableNameRecord(input: { input: 1, value: "a" }) { input value } }',
      'mutation { done: updateTableNameRecord(input_: 1, input: { value: "b" }) { value } }',
      "mutation { done: deleteTableNameRecord(input_: 1) }",
    ];
    expect(await read(created!)).toEqual({ done: { input: "1", value: "a" } });
    expect(await read(updated!)).toEqual({ done: { value: "b" } });
    expect(await read(deleted!)).toEqual({ done: true });
  });
});

test("a relation does not take the name of a column", async () => {
  expect(await read("{ guest(id: 1) { home homeByHomeId homeByHomeId_ { id } homeByHomeId_2 { number } } }")).toEqual({
    guest: { home: "a", homeByHomeId: "b", homeByHomeId_: { id: "1" }, homeByHomeId_2: { number: 1 } },
  });
});

describe("a type", () => {
  test("with a taken name, or without letters, has a suffix or is omitted", () => {
    expect(fieldsOf("Typed")).toEqual({
      id: "ID!",
      date: "DateType",
      query: "QueryType",
      node: "NodeRecord",
      intervalInput: "IntervalInputType",
      _1st: "_2nd",
      unnamed: "Unnamed",
      unnamed_: "UnnamedType",
      html: "TextHtml",
      cursor: "CursorType",
      way: "Way",
      wayInput: "WayInputType",
      wayRange: "BigFloatRange",
      edge: "UsersEdgeRecord",
      input: "CreateUserInputType",
      filter: "UserFilterInputType",
      updating: "UpdateUserInputType",
    });
    expect(fieldsOf("ShopTyped")).toEqual({ id: "ID!", date: "ShopDate" });
  });

  test("keeps its values", async () => {
    const input = {
      id: 1,
      date: "today",
      query: "unnamed_2",
      node: { id: "1" },
      unnamed: "eA==",
      cursor: "c",
      _1st: "_1",
    };
    const { createTyped } = await read(
      "mutation ($input: CreateTypedInput!) { createTyped(input: $input) { id date query node { id } unnamed cursor _1st } }",
      { input },
    );
    expect(createTyped).toEqual({ ...input, id: "1" });
    expect((await generated.owner.query("select query from public.typed")).rows).toEqual([{ query: "←" }]);
  });
});

describe("a function", () => {
  test.each([
    ["{ query }", { query: 1 }],
    ["{ node(id: 3) }", { node: 3 }],
    ["{ cursor }", { cursor: [1] }],
    ["{ personEdge }", { personEdge: [1] }],
    ["{ user }", { user: [1] }],
    ["{ unnamed riBen _1st }", { unnamed: 1, riBen: 3, _1st: 4 }],
    ["{ line { id name } line_ { a b } }", { line: [{ id: 1, name: "x" }], line_: { a: 1, b: 2 } }],
    ["{ shopCount shopCount_ }", { shopCount: 1, shopCount_: 2 }],
    [
      "{ readIt(aB: 1, aB_: 2, unnamed: 3, unnamed_: 4, query: 5, node: 6, first: 7, Ri_Ben: 1) }",
      { readIt: 1_234_568 },
    ],
    [
      `{ users(name: "Alice") { edges { node { total total_ unnamed } } } }`,
      { users: { edges: [{ node: { total: 2, total_: 1, unnamed: 3 } }] } },
    ],
    ["{ anyImage }", { anyImage: "eA==" }],
    ["mutation { thing(input: { a: 2 }) }", { thing: 2 }],
    ["mutation { userFilter(input: { a: 3 }) }", { userFilter: 3 }],
    ["mutation { one: doIt(input: { a: 0 }) two: doIt_(input: { a: 0 }) }", { one: 1, two: 2 }],
    ["mutation { updatePerson(id: 1, input: { id_: 5 }) }", { updatePerson: 5 }],
    ["mutation { deleteThing(input: { id_: 6 }) }", { deleteThing: 6 }],
    [`mutation { linesAsHtml(input: { state: "<p>", next: { id: 1, name: "a" } }) }`, { linesAsHtml: "<p>a" }],
  ])("%s", async (source, data) => {
    expect(await read(source)).toEqual(data);
  });

  test("replaces a mutation, with the name of its input", async () => {
    expect(await read(`mutation { createUser(input: { name: "Bob" }) { name } }`)).toEqual({
      createUser: { name: "Bob" },
    });
  });
});
