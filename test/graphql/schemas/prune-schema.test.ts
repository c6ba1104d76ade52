import {
  buildSchema,
  type GraphQLSchema,
  isInputObjectType,
  isInterfaceType,
  isObjectType,
  printSchema,
  validateSchema,
} from "grafast/graphql";
import { describe, expect, test } from "vitest";
import { findHiddenElements, pruneSchema } from "../../../graphql/schemas/prune-schema.ts";
import { withVisibility } from "../../../plugins/VisibilityPlugin.ts";
import { runToCompletion } from "../../../runtime/concurrency/stepwise.ts";

const NOTHING = { may: () => false, mayExecute: () => false, ownValueOf: () => null };

/** A schema of which a role does not see these fields: `Query.secret`, `Query.things(secret:)`. */
function schemaWith(text: string, forbidden: readonly string[]): GraphQLSchema {
  const schema = buildSchema(text);
  const mark = (part: { extensions: object }, coordinate: string) => {
    if (forbidden.includes(coordinate)) part.extensions = withVisibility({ extensions: {} }, () => false).extensions;
  };
  for (const type of Object.values(schema.getTypeMap())) {
    if (isInputObjectType(type))
      for (const field of Object.values(type.getFields())) mark(field, `${type}.${field.name}`);
    if (!isObjectType(type) && !isInterfaceType(type)) continue;
    for (const field of Object.values(type.getFields())) {
      mark(field, `${type}.${field.name}`);
      for (const argument of field.args) mark(argument, `${type}.${field.name}(${argument.name}:)`);
    }
  }
  return schema;
}

function prune(text: string, ...forbidden: string[]): GraphQLSchema {
  const schema = schemaWith(text, forbidden);
  const hidden = runToCompletion(findHiddenElements(schema, NOTHING));
  const pruned = runToCompletion(pruneSchema(schema, { hidden, withheld: new Map() }));
  expect(validateSchema(pruned)).toEqual([]);
  return pruned;
}

/** Prints a schema on one line. */
const print = (schema: GraphQLSchema) => printSchema(schema).replace(/\s+/g, " ");

describe("a schema with hidden fields", () => {
  test("omits a type if all its fields are hidden", () => {
    const pruned = prune(
      `type Query { one: One two(in: In!, at: At): Int three: [Three!]! }
       type One { secret: Int, only: Only } type Only { one: One, secret: Int }
       input In { secret: In } input At { needed: In! and: Int } type Three { two(at: At, x: Int): Int }`,
      "One.secret",
      "Only.secret",
      "Only.one",
      "In.secret",
    );
    expect(print(pruned)).toBe("type Query { three: [Three!]! } type Three { two(x: Int): Int }");
  });

  test("has the types that are still referenced, in the order of the whole one", () => {
    const pruned = prune(
      "type Query { a: A secret: B c: C } type A { x: E } type B { d: D } enum E { V } type C { e: E } scalar D",
      "Query.secret",
    );
    expect(print(pruned)).toBe("type Query { a: A c: C } type A { x: E } enum E { V } type C { e: E }");
  });

  test("has no operation type without fields, except Query, which then has isEmpty", () => {
    const pruned = prune(
      "type Query { a: Int } type Mutation { b: Int } type Subscription { c: Int }",
      "Query.a",
      "Mutation.b",
      "Subscription.c",
    );
    expect(Object.keys(pruned.getQueryType()!.getFields())).toEqual(["isEmpty"]);
    expect([pruned.getMutationType(), pruned.getSubscriptionType()]).toEqual([undefined, undefined]);
  });

  test("has the fields of an interface that all its types show, and the members of a union that show any", () => {
    const pruned = prune(
      `type Query { thing: Thing either: Either }
       interface Thing { id: Int name: String size: Int }
       type Box implements Thing { id: Int name: String size: Int extra: Int }
       type Bag implements Thing { id: Int name: String size: Int }
       union Either = Box | Secret type Secret { secret: Int }`,
      "Bag.name",
      "Thing.size",
      "Secret.secret",
    );
    expect(print(pruned)).toBe(
      "type Query { thing: Thing either: Either } interface Thing { id: Int } " +
        "type Box implements Thing { id: Int name: String size: Int extra: Int } type Bag implements Thing { id: Int size: Int } " +
        "union Either = Box",
    );
  });

  test("shares the unchanged types, with all types that they reference", () => {
    const schema = schemaWith(
      `type Query { a: A b(in: In): B } type A { b: B secret: Int } type B { e: E next: B } enum E { V } input In { e: E }`,
      ["A.secret"],
    );
    const hidden = runToCompletion(findHiddenElements(schema, NOTHING));
    const pruned = runToCompletion(pruneSchema(schema, { hidden, withheld: new Map() }));
    const shared = Object.keys(pruned.getTypeMap()).filter((name) => pruned.getType(name) === schema.getType(name));
    expect(shared).toEqual(expect.arrayContaining(["B", "E", "In"]));
    expect(shared).not.toContain("A");
    expect(shared).not.toContain("Query");
  });
});
