import { expect, test } from "vitest";
import { makeJsonPatch } from "../../../live/queries/json-patch.ts";
import { parseJsonExactly } from "../../../runtime/json/json-values.ts";
import { applyJsonPatch } from "./apply-json-patch.ts";

const row = (id: number, title: string) => ({ id, title, tags: ["a", "b"] });

test.each([
  ["nothing", { a: [1, { b: null }] }, { a: [1, { b: null }] }, []],
  ["another kind of value", [1], { 0: 1 }, [{ op: "replace", path: "", value: { 0: 1 } }]],
  [
    "a member",
    { a: 1, b: 2 },
    { a: 1, c: 3 },
    [
      { op: "remove", path: "/b" },
      { op: "add", path: "/c", value: 3 },
    ],
  ],
  ["names with special characters", { "a/b~": 1 }, { "a/b~": 2 }, [{ op: "replace", path: "/a~1b~0", value: 2 }]],
  ["a row at the start", [row(1, "x")], [row(2, "y"), row(1, "x")], [{ op: "add", path: "/0", value: row(2, "y") }]],
  [
    "a row in the middle",
    [1, 2, 3].map((id) => row(id, "x")),
    [1, 3].map((id) => row(id, "x")),
    [{ op: "remove", path: "/1" }],
  ],
  [
    "a column",
    [row(1, "x"), row(2, "y")],
    [row(1, "x"), row(2, "z")],
    [{ op: "replace", path: "/1/title", value: "z" }],
  ],
])("a patch has only what differs: %s", (_, before, after, expected) => {
  expect(makeJsonPatch(before, after)).toEqual(expected);
});

test("numbers keep all digits", () => {
  const [before, after] = ['[{"id":12345678901234567890}]', '[{"id":12345678901234567891}]'].map(parseJsonExactly);
  expect(JSON.stringify(makeJsonPatch(before, after))).toBe(
    '[{"op":"replace","path":"/0/id","value":12345678901234567891}]',
  );
});

test("any patch that is applied to the first value gives the second one", () => {
  let seed = 7;
  const random = (below: number) => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
    return seed % below;
  };
  const value = (depth: number): unknown => {
    if (depth === 0 || random(4) === 0) return [null, true, random(3), `t${random(3)}`][random(4)];
    if (random(2) === 0) return Array.from({ length: random(6) }, () => value(depth - 1));
    return Object.fromEntries(Array.from({ length: random(5) }, () => [`m${random(6)}`, value(depth - 1)]));
  };
  for (let run = 0; run < 2_000; run++) {
    const [before, after] = [value(4), value(4)];
    expect(applyJsonPatch(before, makeJsonPatch(before, after))).toEqual(after);
  }
});

test("long arrays are compared at equal places", () => {
  const before = Array.from({ length: 2_000 }, (_, id) => ({ id }));
  const after = before.map(({ id }) => ({ id: id % 2 === 0 ? id : -id }));
  expect(applyJsonPatch(before, makeJsonPatch(before, after))).toEqual(after);
});
