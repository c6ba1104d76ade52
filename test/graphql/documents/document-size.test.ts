import { buildSchema, getIntrospectionQuery, parse } from "grafast/graphql";
import { describe, expect, test } from "vitest";
import { type DocumentLimits, measureDocument } from "../../../graphql/documents/document-size.ts";
import { DocumentBudget, makeDocumentReader } from "../../../graphql/documents/documents.ts";
import { GraphqlRefusal } from "../../../graphql/documents/graphql-refusal.ts";
import { runToCompletion } from "../../../runtime/concurrency/stepwise.ts";

const DEFAULTS: DocumentLimits = {
  depth: 15,
  complexity: 1000,
  tokens: 15_000,
  aliases: 1000,
  directives: 500,
  rootFields: 500,
};

function codes(text: string, limits: Partial<DocumentLimits> = {}): unknown[] {
  return measureDocument(parse(text), { ...DEFAULTS, ...limits }).errors.map(({ extensions }) => extensions.code);
}

/** `{a{a{a}}}` */
const nested = (levels: number) => "{a".repeat(levels) + "}".repeat(levels);
const fields = (count: number, prefix = "f") => Array.from({ length: count }, (_, index) => prefix + index).join(" ");

describe("depth", () => {
  test("of 15 is allowed, of 16 not", () => {
    expect(codes(nested(15))).toEqual([]);
    expect(codes(nested(16))).toEqual(["QUERY_TOO_DEEP"]);
  });

  test("includes fragments, inline fragments and aliases", () => {
    const text = (levels: number) => `{ b: a { ... { ...F } } } fragment F on T ${nested(levels)}`;
    expect(codes(text(14))).toEqual([]);
    expect(codes(text(15))).toEqual(["QUERY_TOO_DEEP"]);
  });

  test("is that of the deepest branch, in any of the operations", () => {
    expect(codes(`query A { x } query B ${nested(16)}`)).toEqual(["QUERY_TOO_DEEP"]);
  });

  test("does not count introspection", () => {
    expect(codes(`{ __schema ${nested(20)} }`)).toEqual([]);
  });
});

describe("a where or orderBy", () => {
  const levels = (count: number, inner = "true") => "{ not: ".repeat(count) + inner + " }".repeat(count);
  const schema = buildSchema(
    "type Query { f(where: W, orderBy: [W!]): Int } input W { not: W, or: [W!], eq: Int, id: ID }",
  );
  const reader = (limits: Partial<DocumentLimits> = {}) =>
    makeDocumentReader({ schema, limits: { ...DEFAULTS, ...limits }, memory: new DocumentBudget() });

  function codesOf(text: string, variables: Record<string, unknown>, limits?: Partial<DocumentLimits>): unknown[] {
    const checked = runToCompletion(reader(limits).read(text));
    try {
      const operation = checked.operation(null);
      checked.restoreDigits(operation)?.(variables, () => variables);
      checked.checkVariables(operation, variables);
      return [];
    } catch (error) {
      if (!(error instanceof GraphqlRefusal)) throw error;
      return error.errors.map(({ extensions }) => extensions.code);
    }
  }

  test("counts each of its fields", () => {
    expect(codes("{ a(where: { or: [{ b: 1 }, { c: 2 }] }) }", { complexity: 4 })).toEqual([]);
    expect(codes("{ a(where: { or: [{ b: 1 }, { c: 2 }] }) }", { complexity: 3 })).toEqual(["QUERY_TOO_COMPLEX"]);
    expect(codes("{ a(orderBy: [{ b: ASC }, { c: { d: ASC } }]) }", { complexity: 3 })).toEqual(["QUERY_TOO_COMPLEX"]);
    expect(codes("{ ...F ...F } fragment F on Q { a(where: { b: 1 }) }", { complexity: 3 })).toEqual([
      "QUERY_TOO_COMPLEX",
    ]);
    expect(codes("mutation { a(input: { b: { c: 1 } }) }", { complexity: 1 })).toEqual([]);
  });

  test("has as many levels as the operation may have", () => {
    expect(codes(`{ a(where: ${levels(15)}) }`)).toEqual([]);
    expect(codes(`{ a(where: ${levels(16)}) }`)).toEqual(["QUERY_TOO_DEEP"]);
  });

  test("that is a variable counts by its value, at each use", () => {
    const text = "query ($where: W, $list: [W!]) { f(where: $where) g: f(where: { or: $list }, orderBy: $list) }";
    expect(codesOf(text, { where: { eq: 1 }, list: [{ eq: 1 }] }, { complexity: 6 })).toEqual([]);
    expect(codesOf(text, { where: { eq: 1 }, list: [{ eq: 1 }] }, { complexity: 5 })).toEqual(["QUERY_TOO_COMPLEX"]);
    expect(codesOf(text, {}, { complexity: 3 })).toEqual([]);
  });

  test("that is a variable with too many levels is refused, however deep it is", () => {
    const nest = (count: number) => {
      let value: object = { eq: 1 };
      for (let level = 1; level < count; level++) value = { not: value };
      return value;
    };
    const text = "query ($where: W) { f(where: $where) }";
    expect(codesOf(text, { where: nest(15) })).toEqual([]);
    expect(codesOf(text, { where: nest(16) })).toEqual(["QUERY_TOO_DEEP"]);
    expect(codesOf(text, { where: nest(900) })).toEqual(["QUERY_TOO_DEEP"]);
    expect(codesOf(text, { where: nest(100_000) }, { depth: 200_000 })).toEqual(["QUERY_TOO_COMPLEX"]);
  });

  test("that is the default of a variable counts too", () => {
    const text = `query ($where: W = { or: [{ eq: 1 }, { eq: 2 }] }) { f(where: $where) }`;
    expect(codesOf(text, {}, { complexity: 4 })).toEqual([]);
    expect(codesOf(text, {}, { complexity: 3 })).toEqual(["QUERY_TOO_COMPLEX"]);
    expect(codesOf(text, { where: {} }, { complexity: 3 })).toEqual([]);
  });
});

describe("complexity", () => {
  test("of 1000 fields is allowed, of 1001 not", () => {
    expect(codes(`{ a { ${fields(999)} } }`)).toEqual([]);
    expect(codes(`{ a { ${fields(1000)} } }`)).toEqual(["QUERY_TOO_COMPLEX"]);
  });

  test("counts aliases of one field as fields", () => {
    const aliases = (count: number) => Array.from({ length: count }, (_, index) => `x${index}: y`).join(" ");
    expect(codes(`{ a { ${aliases(999)} } }`)).toEqual([]);
    expect(codes(`{ a { ${aliases(1000)} } }`)).toContain("QUERY_TOO_COMPLEX");
  });

  test("counts a fragment as often as it is spread", () => {
    expect(codes(`{ a { ...F } b { ...F } } fragment F on T { ${fields(499)} }`)).toEqual([]);
    expect(codes(`{ a { ...F } b { ...F } } fragment F on T { ${fields(500)} }`)).toEqual(["QUERY_TOO_COMPLEX"]);
  });

  test("of fragments that double at each step is computed without expanding them", () => {
    const steps = Array.from(
      { length: 1000 },
      (_, index) => `fragment F${index} on T { ...F${index + 1} ...F${index + 1} }`,
    );
    const text = `{ ...F0 } ${steps.join(" ")} fragment F1000 on T { x }`;
    expect(codes(text)).toContain("QUERY_TOO_COMPLEX");
  });

  test("does not count __typename", () => {
    expect(codes(`{ a { ${fields(999)} __typename } }`)).toEqual([]);
  });

  test("of introspection has a limit of its own", () => {
    expect(codes(`{ __schema { ${fields(999)} } a { ${fields(999)} } }`)).toEqual([]);
    expect(codes(`{ __schema { ${fields(1000)} } }`)).toEqual(["QUERY_TOO_COMPLEX"]);
  });

  test("of introspection always suffices for tools, even if the other limit is lower", () => {
    expect(codes(getIntrospectionQuery(), { complexity: 1 })).toEqual([]);
    expect(codes(`{ __schema { ${fields(1000)} } }`, { complexity: 1 })).toEqual(["QUERY_TOO_COMPLEX"]);
    expect(codes(`{ __schema { ${fields(1000)} } }`, { complexity: 1001 })).toEqual([]);
  });

  test("is too high for repeated lists of all types, and not for a table with that name", () => {
    const schemas = (count: number) =>
      Array.from({ length: count }, (_, index) => `s${index}: __schema { ...T }`).join(" ");
    const lists = (count: number) => Array.from({ length: count }, (_, index) => `t${index}: types { name }`).join(" ");
    const all = "fragment T on __Schema { types { name } }";
    expect(codes(`{ ${schemas(2)} } ${all}`)).toEqual([]);
    expect(codes(`{ ${schemas(3)} } ${all}`)).toEqual(["QUERY_TOO_COMPLEX"]);
    expect(codes(`{ __schema { ${lists(3)} } }`)).toEqual(["QUERY_TOO_COMPLEX"]);
    expect(codes(`{ __schema { types { name } } ${lists(3)} a { ${lists(3)} } }`)).toEqual([]);
  });
});

describe("other limits", () => {
  test("apply to aliases, directives and fields at the root", () => {
    expect(codes("{ x: a y: a }", { aliases: 1 })).toEqual(["QUERY_TOO_COMPLEX"]);
    expect(codes("{ a @include(if: true) @skip(if: false) }", { directives: 1 })).toEqual(["QUERY_TOO_COMPLEX"]);
    expect(codes("{ a ...F } fragment F on T { b }", { rootFields: 1 })).toEqual(["QUERY_TOO_COMPLEX"]);
    expect(codes("{ x: a } ", { aliases: 1, directives: 0, rootFields: 1 })).toEqual([]);
  });

  test("apply to aliases of introspection fields", () => {
    expect(codes("{ x: __schema { a } y: __schema { a } }", { rootFields: 1 })).toEqual(["QUERY_TOO_COMPLEX"]);
  });
});

describe("a document", () => {
  const schema = buildSchema(`
    type Query { a: Query b(x: Int, first: Int): String c(x: Int!): String d(list: [Int!]): String }
    type Subscription { e: String }
  `);
  const readerWith = (limits: Partial<DocumentLimits> = {}, memory = new DocumentBudget(), onInvalid = () => {}) => {
    const documents = makeDocumentReader({ schema, limits: { ...DEFAULTS, ...limits }, memory, onInvalid });
    return (text: string) => runToCompletion(documents.read(text));
  };
  const read = (text: string, limits?: Partial<DocumentLimits>) => readerWith(limits)(text);
  const refused = (text: string, limits?: Partial<DocumentLimits>) => {
    try {
      read(text, limits);
      return [];
    } catch (error) {
      if (!(error instanceof GraphqlRefusal)) throw error;
      return error.errors.map(({ extensions }) => extensions.code);
    }
  };

  test("is read once", () => {
    const reader = readerWith();
    expect(reader("{ b }")).toBe(reader("{ b }"));
  });

  test("is read once by those who read it at the same time", () => {
    const { read: readInSteps } = makeDocumentReader({ schema, limits: DEFAULTS, memory: new DocumentBudget() });
    const [one, other] = [readInSteps("{ b }"), readInSteps("{ b }")];
    one.next();
    other.next();
    expect(runToCompletion(one)).toBe(runToCompletion(other));
  });

  test("is evicted from the cache with its plans, by weight", () => {
    let forgotten = 0;
    const memory = new DocumentBudget();
    memory.onFull(() => forgotten++);
    const reader = readerWith({}, memory);
    const large = (number: number) =>
      `{ ${Array.from({ length: 100 }, (_, index) => `a${number}_${index}: a { b }`).join(" ")} }`;
    const first = reader(large(0));
    for (let number = 1; number < 40; number++) reader(large(number));
    expect([reader(large(0)) === first, forgotten]).toEqual([true, 0]);
    for (let number = 40; number < 50; number++) reader(large(number));
    expect([reader(large(0)) === first, forgotten]).toEqual([false, 1]);
  });

  test("that cannot be parsed or is invalid is refused with its code", () => {
    expect(refused("{")).toEqual(["GRAPHQL_PARSE_FAILED"]);
    expect(refused("{ z }")).toEqual(["GRAPHQL_VALIDATION_FAILED"]);
    let invalid = 0;
    const reader = readerWith({}, new DocumentBudget(), () => invalid++);
    expect(() => reader("{")).toThrow(GraphqlRefusal);
    reader("{ b }");
    expect(invalid).toBe(0);
    expect(() => reader("{ z }")).toThrow(GraphqlRefusal);
    expect(invalid).toBe(1);
    expect(refused("{ b(x: 1) }")).toEqual([]);
  });

  test("with a page size that is not a number is refused for its invalid value", () => {
    expect(refused('{ b(first: "3") }')).toEqual(["VALIDATION_ERROR"]);
    expect(refused('{ b(x: "3") }')).toEqual(["GRAPHQL_VALIDATION_FAILED"]);
    expect(refused("query ($first: String) { b(first: $first) }")).toEqual(["GRAPHQL_VALIDATION_FAILED"]);
    expect(refused("{ b(first: 3) }")).toEqual([]);
  });

  test("with a cycle of fragments is refused", () => {
    expect(refused("{ ...F } fragment F on Query { a { ...G } } fragment G on Query { a { ...F } }")).toEqual([
      "GRAPHQL_VALIDATION_FAILED",
    ]);
    expect(refused("{ ...F } fragment F on Query { ...F }")).toEqual(["GRAPHQL_VALIDATION_FAILED"]);
  });

  test("with too many tokens is refused while it is parsed", () => {
    expect(refused("{ b b b }", { tokens: 5 })).toEqual([]);
    expect(refused("{ b b b b }", { tokens: 5 })).toEqual(["QUERY_TOO_COMPLEX"]);
  });

  test.each([
    ["fields", "{a".repeat(100_000)],
    ["lists", `{ b(x: ${"[".repeat(100_000)}`],
    ["objects", `{ b(x: ${"{a:".repeat(100_000)}`],
    ["types", `query ($x: ${"[".repeat(100_000)}`],
  ])("of endlessly nested %s is refused, without a stack overflow", (_, text) => {
    expect(refused(text, { tokens: 1_000_000 })).toEqual(["QUERY_TOO_DEEP"]);
    expect(refused(text)[0]).toMatch(/^QUERY_TOO_/);
  });

  test.each([10, 100, 1000, 3000])("with %i nested values is invalid or too deep", (levels) => {
    const field = `b(x: ${"[".repeat(levels)}${"]".repeat(levels)})`;
    expect(refused(`{ ${field} ${field} }`)[0]).toMatch(/^(GRAPHQL_VALIDATION_FAILED|QUERY_TOO_DEEP)$/);
  });

  test("accepts null for nullable variables, and absent variables with a default", () => {
    const bearing = (text: string, variables: Record<string, unknown>) => () => {
      const { operation, checkVariables } = read(text);
      checkVariables(operation(null), variables);
    };
    for (const text of [
      "query ($x: Int = 1) { c(x: $x) }",
      "query ($x: Boolean = false) { b @include(if: $x) }",
      "query ($x: Int = 1) { d(list: [$x]) }",
      "query ($y: Int, $x: Int = 1) { b(x: $y) ...F } fragment F on Query { a { c(x: $x) } }",
    ]) {
      expect(bearing(text, { x: null })).toThrow(GraphqlRefusal);
      expect(bearing(text, { x: 1, y: null })).not.toThrow();
      expect(bearing(text, {})).not.toThrow();
    }
    expect(bearing("query ($x: Int = 1) { b(x: $x) }", { x: null })).not.toThrow();
    expect(bearing("query ($x: Int = 1) { c(x: $x) } ", { constructor: null })).not.toThrow();
  });

  test.each([
    "subscription ($x: Boolean!) { e @skip(if: $x) }",
    "subscription ($x: Boolean!) { ...F @include(if: $x) } fragment F on Subscription { e }",
    "subscription ($x: Boolean = true) { ... { e @include(if: $x) } }",
    "subscription { e @skip(if: true) }",
    "subscription { e @include(if: false) }",
    "subscription { ...F @skip(if: true) } fragment F on Subscription { e }",
    "subscription { ...F } fragment F on Subscription { ... @include(if: false) { e } }",
    "subscription { ...F } fragment F on Subscription { ...F }",
    "subscription { ...Nothing }",
    'subscription { e @skip(if: "yes") }',
    "subscription { e @skip }",
    "subscription { e f: e }",
  ])("that is %s is refused: a subscription is one field, with any variables", (text) => {
    expect(new Set(refused(text))).toEqual(new Set(["GRAPHQL_VALIDATION_FAILED"]));
  });

  test("of a subscription may have conditions that leave its field", () => {
    expect(refused("subscription { e }")).toEqual([]);
    expect(refused("subscription { e @skip(if: false) }")).toEqual([]);
    expect(refused("subscription { e f: e @include(if: false) }")).toEqual([]);
    expect(refused("query ($x: Boolean!) { b @skip(if: $x) }")).toEqual([]);
  });

  test("of an unknown name is refused", () => {
    expect(() => read("query A { b } query B { b }").operation(null)).toThrow("operationName");
    expect(() => read("query A { b }").operation("C")).toThrow('"C"');
    expect(() => read("fragment F on Query { b }")).toThrow(GraphqlRefusal);
    expect(read("query A { b } query B { b }").operation("B").name?.value).toBe("B");
  });

  test("is refused quickly, for every known attack", () => {
    const startedAt = performance.now();
    for (const text of [
      `{ ${"b ".repeat(1000)} }`,
      `{ ${Array.from({ length: 330 }, () => "a { b a { b } }").join(" ")} }`,
      `{ ${"...F ".repeat(1000)} } fragment F on Query { b }`,
      `{ a { ${Array.from({ length: 999 }, (_, index) => `b(x: ${index})`).join(" ")} } }`,
      `{ ${"...F ".repeat(5000)} } fragment F on Query { ${"...G ".repeat(5000)} } fragment G on Query { b }`,
    ]) {
      refused(text);
    }
    // A second would do for each; a fault of this kind takes minutes.
    expect(performance.now() - startedAt).toBeLessThan(10_000);
  });
});
