import { buildSchema, GraphQLObjectType, GraphQLSchema, GraphQLString, printSchema } from "grafast/graphql";
import { expect, test } from "vitest";
import { makeSchema } from "../../../graphql/schemas/stepwise-schema.ts";
import { runToCompletion } from "../../../runtime/concurrency/stepwise.ts";

const { types, ...config } = buildSchema(`
  directive @limited(to: Limit) on FIELD
  input Limit { rows: Int!, unit: Unit }
  enum Unit { KB MB }
  interface Node { id: ID! }
  interface Named implements Node { id: ID!, name(in: Language): String }
  enum Language { DE EN }
  type Film implements Named & Node { id: ID!, name(in: Language): String, cast: [Actor!] }
  type Actor implements Node { id: ID!, films: [Film!] }
  type Studio implements Node { id: ID! }
  union Found = Film | Actor
  type Query { find(limit: Limit): [Found] node: Node }
  type Mutation { addFilm(name: String): Film }
`).toConfig();
const some = (names: readonly string[]) => types.filter(({ name }) => names.includes(name));

test.each([
  ["all types", types],
  ["all types in another order", types.toReversed()],
  ["types that refer to others", some(["Studio", "Film"])],
  ["no types", []],
])("makes of %s what the constructor makes, in its order", (_, listed) => {
  const [made, constructed] = [
    runToCompletion(makeSchema({ ...config, types: listed })),
    new GraphQLSchema({ ...config, types: listed }),
  ];
  expect(Object.keys(made.getTypeMap())).toEqual(Object.keys(constructed.getTypeMap()));
  expect(printSchema(made)).toBe(printSchema(constructed));
  for (const type of types.filter((type) => "getInterfaces" in type)) {
    const node = made.getType("Node") as never;
    expect(made.getImplementations(node)).toEqual(constructed.getImplementations(node));
    expect(made.isSubType(node, type as never)).toBe(constructed.isSubType(node, type as never));
  }
});

test("refuses two types of one name, as the constructor does", () => {
  const other = new GraphQLObjectType({ name: "Film", fields: { title: { type: GraphQLString } } });
  const twice = { ...config, types: [...types, other] };
  expect(() => new GraphQLSchema(twice)).toThrow('"Film"');
  expect(() => runToCompletion(makeSchema(twice))).toThrow('"Film"');
});
