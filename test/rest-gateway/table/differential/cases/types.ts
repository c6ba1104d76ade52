import { type Area, get, group, patch, returning } from "../case.ts";

/** For each type, a value that is in the table, another, and one that the type refuses. */
const COLUMNS: Readonly<Record<string, readonly [value: string, other: string, wrong: string]>> = {
  small: ["0", "32767", "x"],
  whole: ["2147483647", "-1", "1.5"],
  big: ["-9223372036854775808", "0", "9223372036854775808"],
  single: ["-1.5", "3.25", "x"],
  double: ["1e-300", "Infinity", "x"],
  exact: ["12345678901234567890.123456789", "0.1", "x"],
  price: ["1.5", "20", "x"],
  cash: ["1.50", "-3", "x"],
  flag: ["true", "f", "maybe"],
  words: ['two, "quoted" \\ and (more)', "one", "\u0000"],
  short_words: ["*%_", "first", "\u0000"],
  padded: ["a", "bb", "\u0000"],
  day: ["2020-02-29", "infinity", "2021-02-29"],
  clock: ["12:30:00.5", "00:00:01", "25:00"],
  clock_zone: ["10:00:00+02", "12:30:00+00", "x"],
  moment: ["2021-12-31 23:59:59.999", "2020-02-29T12:00:00", "x"],
  moment_zone: ["2020-02-29T13:00:00+01:00", "infinity", "x"],
  duration: ["24 hours", "-02:00:00", "x"],
  plain: ["[1]", "1", "{"],
  document: ['"text"', "{}", "{"],
  key: ["00000000-0000-0000-0000-000000000001", "FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF", "x"],
  bytes: ["\\x00ff", "text", "\\x0"],
  bits: ["1010", "0001", "2"],
  more_bits: ["1", "1010101", "2"],
  host: ["10.0.0.1", "::1", "x"],
  network: ["10.0.0.0/8", "2001:db8::/32", "10.0.0.1/8"],
  place: ["(1,2)", "(0,0)", "x"],
  markup: ["<b/>", "<a>1</a>", "<b>"],
  search: ["'cat':1 'dog':2", "fish:2B", "'"],
  wholes: ["{1,2}", "{3,NULL}", "{x}"],
  texts: ['{a,"b c"}', "{}", "{"],
  grid: ["{{1,2},{3,4}}", "{{5}}", "{{1},{2,3}}"],
  moods: ["{sad,happy}", "{}", "{angry}"],
  span: ["[1,5)", "empty", "[5,1)"],
  days: ["[2020-01-01,2020-01-31]", "empty", "[x,)"],
  exacts: ["[0.5,1.50]", "(,)", "x"],
  moments: ["[2021-01-01 01:00+01,)", "(,)", "x"],
  spans: ["{[1,3),[7,9)}", "{}", "{1}"],
  warmth: ["[36.5,38)", "empty", "x"],
  mood: ["calm", "happy", "angry"],
  positive: ["2", "1", "-1"],
  code: ["AA", "BB", "aa"],
  address: ['(Hill,1,"{x,y}")', "(,,)", "x"],
  addresses: ['{"(Hill,1,{x})"}', "{}", "x"],
};
const COMPARISONS = ["eq", "neq", "gt", "gte", "lt", "lte", "isdistinct"];

const whole = (cases: ReturnType<typeof get>) => ({ ...cases, outcome: "any" });
const ofEach = (questions: (column: string, value: string, other: string, wrong: string) => string[]) =>
  Object.entries(COLUMNS).flatMap(([column, [value, other, wrong]]) =>
    questions(column, value, other, wrong).map((path) => whole(get(path))),
  );

/** Both refuse the same operations of a type (json has no equality), so no outcome is foreseen here. */
export const types: Area = {
  name: "types",
  groups: [
    group(
      "every type is read",
      ofEach((column) => [`/types?select=${column}`, `/types?select=${column}::text`]),
    ),
    group(
      "every type is compared",
      ofEach((column, value) =>
        COMPARISONS.map((operator) => `/types?select=id&${column}=${operator}.${encodeURIComponent(value)}`),
      ),
    ),
    group(
      "every type is listed",
      ofEach((column, value, other) => [
        `/types?select=id&${column}=in.(${quoted(value)},${quoted(other)})`,
        `/types?select=id&${column}=not.in.(${quoted(value)})`,
        `/types?select=id&${column}=eq(any).{${quoted(value)},${quoted(other)}}`,
      ]),
    ),
    group(
      "every type is null or not",
      ofEach((column) => [`/types?select=id&${column}=is.null`, `/types?select=id&${column}=not.is.null`]),
    ),
    group(
      "every type is ordered",
      ofEach((column) => [`/types?select=id&order=${column}`, `/types?select=id&order=${column}.desc.nullslast`]),
    ),
    group(
      "a value that is none of the type",
      ofEach((column, _value, _other, wrong) => [
        `/types?select=id&${column}=eq.${encodeURIComponent(wrong)}`,
        `/types?select=id&${column}=in.(${quoted(wrong)})`,
      ]),
    ),
    group(
      "inside a logic tree",
      ofEach((column, value, other) => [
        `/types?select=id&or=(${column}.eq.${quoted(value)},${column}.gt.${quoted(other)})`,
      ]),
    ),
    group(
      "every type is written from its text",
      Object.entries(COLUMNS).flatMap(([column, [value, , wrong]]) =>
        [value, wrong].map((text) => whole(returning(patch(`/types?select=${column}&id=eq.4`, { [column]: text })))),
      ),
    ),
    group("every type is written from JSON", [
      ...[
        { small: 5, whole: 6, big: 7, single: 8.5, double: 9.25, exact: 1e20, price: 1.005 },
        { flag: true, words: "w", short_words: "s", padded: "p" },
        { plain: { b: 1, a: [1, 2.0, null] }, document: { b: 1, a: [1, 2.5, null] } },
        { plain: null, document: null },
        { plain: "text", document: 5 },
        { wholes: [1, null, 3], texts: ["a", 'b"c', null], moods: ["sad"], grid: [[1], [2]] },
        { address: { street: "S", number: 4, tags: ["a"] }, addresses: [{ street: "T" }, null] },
        { span: "[1,3]", days: "[2024-01-01,2024-01-02]", spans: "{[1,2]}" },
        { mood: "sad", positive: 9, code: "ZZ" },
      ].map((body) => returning(patch(`/types?select=${Object.keys(body).join(",")}&id=eq.4`, body))),
      ...[
        { small: 1.5 },
        { small: "x" },
        { small: 99999 },
        { flag: "maybe" },
        { mood: "angry" },
        { positive: -1 },
        { code: "zz" },
        { wholes: "1,2" },
        { wholes: ["x"] },
        { address: "x" },
        { span: "[3,1]" },
        { short_words: "x".repeat(21) },
        { day: "2021-02-29" },
        { grid: [[1], [2, 3]] },
        { words: { an: "object" } },
        { words: ["a", "list"] },
        { whole: "7" },
        { whole: [1] },
        { price: 1e9 },
        { bytes: "\\xZZ" },
      ].map((body) => whole(returning(patch(`/types?select=${Object.keys(body).join(",")}&id=eq.4`, body)))),
    ]),
  ],
};

function quoted(value: string): string {
  return `"${encodeURIComponent(value.replaceAll("\\", "\\\\").replaceAll('"', '\\"'))}"`;
}
