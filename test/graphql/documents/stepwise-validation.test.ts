import fc from "fast-check";
import { buildSchema, type DocumentNode, parse, validate } from "grafast/graphql";
import { expect, test } from "vitest";
import { validateInSteps } from "../../../graphql/documents/stepwise-validation.ts";
import { runToCompletion } from "../../../runtime/concurrency/stepwise.ts";

const SCHEMA = buildSchema(`
  directive @mark(at: Int) on FIELD
  interface Named { name: String }
  input Where { id: Int, name: String = "x", and: [Where!], required: Boolean! }
  type A implements Named { name: String b: B bs(first: Int!, where: Where): [B!]! }
  type B implements Named { name: String a: A any: Either count(of: [Int!]): Int }
  union Either = A | B
  type Query { a: A b(id: ID!): B named: Named either: Either }
  type Mutation { write(input: Where): B }
  type Subscription { a: A b: B }
`);
const MAX_ERRORS = 20;

const name = fc.constantFrom(
  "a",
  "b",
  "bs",
  "name",
  "any",
  "named",
  "either",
  "write",
  "count",
  "nothing",
  "__typename",
);
const value = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom("1", '"text"', "true", "null", "$x", "$y", "WORD", "1.5"),
    fc.array(tie("value"), { maxLength: 2 }).map((items) => `[${items.join(" ")}]`),
    fc
      .tuple(fc.constantFrom("id", "name", "and", "required", "nothing"), tie("value"))
      .map(([key, of]) => `{ ${key}: ${of} }`),
  ),
})).value as fc.Arbitrary<string>;
const argument = fc
  .tuple(fc.constantFrom("id", "first", "where", "of", "input", "nothing"), value)
  .map((pair) => pair.join(": "));
const argumentsText = fc.array(argument, { maxLength: 2 }).map((all) => (all.length > 0 ? `(${all.join(" ")})` : ""));
const directive = fc.constantFrom("", "", "", " @mark", " @mark(at: 1)", " @skip(if: $x)", " @include", " @nothing");
const selections = fc.letrec((tie) => ({
  selection: fc.oneof(
    { maxDepth: 4 },
    fc.tuple(fc.constantFrom("", "", "x: "), name, argumentsText, directive).map((parts) => parts.join("")),
    fc.tuple(name, argumentsText, directive, tie("set")).map((parts) => parts.join(" ")),
    fc
      .tuple(fc.constantFrom("...", "... on A", "... on B", "... on Named", "... on Nothing"), directive, tie("set"))
      .map((parts) => parts.join(" ")),
    fc.constantFrom("...F", "...G", "...H"),
  ),
  set: fc.array(tie("selection"), { minLength: 1, maxLength: 4 }).map((all) => `{ ${all.join(" ")} }`),
})).set as fc.Arbitrary<string>;
const variables = fc.constantFrom(
  "",
  "",
  "($x: Boolean!)",
  "($x: Int = 1, $y: Where)",
  "($x: [Nothing] = {})",
  "($x: Int, $x: Int)",
);
const operation = fc
  .tuple(fc.constantFrom("query", "query Q", "mutation", "subscription"), variables, directive, selections)
  .map((parts) => parts.join(" "));
const fragment = fc
  .tuple(fc.constantFrom("fragment F on A", "fragment G on Query", "fragment F on Nothing"), directive, selections)
  .map((parts) => parts.join(" "));
const documents = fc
  .tuple(operation, fc.array(fc.oneof(operation, fragment), { maxLength: 3 }))
  .map(([first, others]) => [first, ...others].join("\n"));

function find(text: string) {
  const document = parse(text);
  const errorsOf = (validated: () => readonly unknown[]) => {
    try {
      return validated().map((error) => JSON.stringify(error));
    } catch (error) {
      return String(error);
    }
  };
  return {
    inSteps: errorsOf(() => runToCompletion(validateInSteps(SCHEMA, document, MAX_ERRORS))),
    atOnce: errorsOf(() => validate(SCHEMA, document, undefined, { maxErrors: MAX_ERRORS })),
  };
}

test("any document has the errors that graphql-js finds, in its order", () => {
  const counts: number[] = [];
  fc.assert(
    fc.property(documents, (text) => {
      const { inSteps, atOnce } = find(text);
      counts.push(atOnce.length);
      expect(inSteps).toEqual(atOnce);
    }),
    { numRuns: 2_000 },
  );
  expect([Math.min(...counts) <= 1, Math.max(...counts) > MAX_ERRORS]).toEqual([true, true]);
});

test("a valid document has none", () => {
  const text =
    'query ($x: Int!) { b(id: "1") { ...F } } fragment F on B { a { bs(first: $x, where: { required: true }) { name } } }';
  expect(find(text)).toEqual({ inSteps: [], atOnce: [] });
});

test("fields that are merged too often end the validation", () => {
  const { inSteps, atOnce } = find(`{ a { ${"name ".repeat(5_000)} } }`);
  expect(inSteps).toEqual(atOnce);
  expect(inSteps).toHaveLength(1);
});

test("a document is visited in a step for each field", () => {
  const document = parse(`{ ${Array.from({ length: 900 }, (_, index) => `a${index}: a { b { name } }`).join(" ")} }`);
  const stepsOf = (validated: DocumentNode) => {
    let steps = 0;
    const validation = validateInSteps(SCHEMA, validated, MAX_ERRORS);
    while (!validation.next().done) steps++;
    return steps;
  };
  expect(stepsOf(document)).toBe(2_700);
});
