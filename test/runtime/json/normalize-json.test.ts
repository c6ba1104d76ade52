import fc from "fast-check";
import { expect, test } from "vitest";
import { runToCompletion } from "../../../runtime/concurrency/stepwise.ts";
import { parseJsonExactly } from "../../../runtime/json/json-values.ts";
import { normalizeJson } from "../../../runtime/json/normalize-json.ts";

const space = fc.constantFrom("", "", " ", "\n\t");
const key = fc
  .oneof(fc.string(), fc.constantFrom("a", "b", "c", "__proto__", "1", "0", '"\\', "\u2028"))
  .map((name) => JSON.stringify(name));
const leaf = fc.oneof(
  fc.constantFrom(
    "1",
    "-0",
    "1.50",
    "12345678901234567890",
    "1e400",
    "true",
    "null",
    '"\\u0041\\/"',
    '"\\\\"',
    '"]},"',
    "{}",
    "[ ]",
  ),
  fc.string({ maxLength: 30 }).map((text) => JSON.stringify(text)),
);
const json = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 5, withCrossShrink: true },
    leaf,
    fc.array(tie("value"), { maxLength: 6 }).map((items) => `[${items.join(",")}]`),
    fc
      .array(fc.tuple(key, space, tie("value")), { maxLength: 6 })
      .map(
        (members) => `{${members.map(([name, gap, value]) => `${gap}${name}${gap}:${gap}${value}${gap}`).join(",")}}`,
      ),
  ),
})).value as fc.Arbitrary<string>;

test("any JSON is written as when it is parsed as a whole", () => {
  fc.assert(
    fc.property(json, space, fc.integer({ min: 0, max: 60 }), (value, gap, pieceLength) => {
      const text = gap + value + gap;
      expect(runToCompletion(normalizeJson(text, pieceLength))).toBe(JSON.stringify(parseJsonExactly(text)));
    }),
    { numRuns: 5_000 },
  );
});

test("a large text takes many steps", () => {
  const row = '{"id": "1", "exact": 12345678901234567890, "list": [1.50, "text"]}';
  const text = `{"data": {"rows": [${Array(20_000).fill(row).join(", ")}], "next": null}}`;
  const writing = normalizeJson(text);
  let steps = 0;
  let step = writing.next();
  for (; !step.done; step = writing.next()) steps++;
  expect(step.value).toBe(JSON.stringify(parseJsonExactly(text)));
  expect(steps).toBeGreaterThan(30);
});
