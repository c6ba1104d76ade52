import fc from "fast-check";
import { expect, test } from "vitest";
import { statementShapeKey } from "../../planner/prepare.ts";
import { buildQuery } from "../../planner/query/build-query.ts";
import { ApiError } from "../../runtime/errors.ts";
import { intents, manners } from "./arbitrary.ts";
import { JSON_FORMAT } from "./fixture-database.ts";
import { column, eq, filter, post, read } from "./intents.ts";
import { planIntent } from "./planner.ts";

const responseOptions = { formats: [JSON_FORMAT], includesBody: true, maxAffected: null };

/** Returns the query of the plan, or the error that refuses it. */
function outcome(...[intent, options]: Parameters<typeof planIntent>): string {
  try {
    return JSON.stringify(buildQuery(planIntent(intent, options)));
  } catch (error) {
    if (error instanceof ApiError) return JSON.stringify([error.code, error.message]);
    throw error;
  }
}

test("intents that differ in one place have different keys, unless their statement or error is the same", () => {
  const request = fc.tuple(intents({ name: fc.constant("x"), value: fc.constant("1") }), manners(fc.constant("x")));
  let different = 0;
  for (const [intent, options] of fc.sample(request, 150)) {
    const key = statementShapeKey(intent, options);
    const expected = outcome(intent, options);
    const others = [
      ...neighbours(intent).map((other) => [other, options] as const),
      ...neighbours(options).map((other) => [intent, other] as const),
    ];
    for (const [otherIntent, otherWishes] of others) {
      if (statementShapeKey(otherIntent, otherWishes) === key) expect(outcome(otherIntent, otherWishes)).toBe(expected);
      else different += 1;
    }
  }
  expect(different).toBeGreaterThan(1_000);
});

/** The values that replace null where something may be absent. */
const PRESENT: Readonly<Record<string, unknown>> = {
  alias: "x",
  hint: "artist_id",
  join: "inner",
  cast: "text",
  aggregate: { name: "max", cast: null },
  quantifier: "any",
  language: "english",
  direction: "desc",
  nulls: "last",
  relation: "artists",
  limit: 1,
  count: "exact",
  upsert: { resolution: "merge", onConflict: null },
  onConflict: ["id"],
  names: ["a"],
  maxAffected: 1,
};

/** Returns all values that differ from it in one leaf. */
function neighbours<T>(value: T, name = ""): T[] {
  if (value === null) return name in PRESENT ? [PRESENT[name] as T] : [];
  if (typeof value === "string") return [`${value}z` as T];
  if (typeof value === "boolean") return [!value as T];
  if (typeof value === "number") return [(value + 1) as T];
  if (Buffer.isBuffer(value)) return [Buffer.from(`[${value}]`) as T];
  if (Array.isArray(value)) {
    const changed = value.flatMap((item, index) => neighbours(item, name).map((other) => value.with(index, other)));
    return [...changed, ...(value.length > 1 ? [value.slice(1)] : [])] as T[];
  }
  const entries = Object.entries(value as object).filter(([key]) => !WORDS.has(key));
  return entries.flatMap(([key, item]) => neighbours(item, key).map((other) => ({ ...value, [key]: other })));
}

/** Any other word in these members would be no intent at all. */
const WORDS = new Set(["kind", "operator", "arrow", "schema", "resolution", "returned", "formats", "field"]);

test("values do not change the key", () => {
  const text = fc.string({ unit: "binary" });
  fc.assert(
    fc.property(text, text, (one, other) => {
      const keys = [one, other].map((value) => {
        const list = filter("title", { kind: "in", values: [value, value].slice(0, value.length % 3) });
        return statementShapeKey(read("works", { where: [eq("title", value), list] }), responseOptions);
      });
      expect(keys[0]).toBe(keys[1]);
    }),
  );
});

test("the position of a cursor does not either, except for a null", () => {
  const key = (order: string, ...values: (string | null)[]) =>
    statementShapeKey(read("works", {}, { page: { kind: "after", position: { order, values } } }), responseOptions);
  expect(key("x", "1", "2")).toBe(key("x", "3", "null"));
  const others = [key("y", "1", "2"), key("x", null, "2"), key("x", "1", null), key("x", "1"), key("x", "1", "2", "3")];
  const first = statementShapeKey(read("works", {}, { page: { kind: "first" } }), responseOptions);
  expect(new Set([...others, key("x", "1", "2"), first, statementShapeKey(read("works"), responseOptions)]).size).toBe(
    8,
  );
});

test("a body that is an object has another key than an array", () => {
  const key = (body: unknown) =>
    statementShapeKey({ ...post("echo_json", body), argument: argumentOf(body) }, responseOptions);
  const argumentOf = (body: unknown) => ({
    kind: "json" as const,
    body: Buffer.from(` \n\t${JSON.stringify(body)}`),
    names: [],
  });
  expect(key({})).toBe(key({}));
  expect(key({})).not.toBe(key([]));
});

test("a zero byte in a name is refused, and its JSON escape is not", () => {
  const key = (name: string) => statementShapeKey(read("works", { select: [column(name)] }), responseOptions);
  expect(() => key("a\0")).toThrow(expect.objectContaining({ kind: "invalid", code: "22021" }));
  expect(() => key("\\\0")).toThrow(expect.objectContaining({ code: "22021" }));
  expect(() => key("\\u0000")).not.toThrow();
  expect(() => key("\\\\u0000")).not.toThrow();
});
