import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type {
  FieldReference,
  FilterOperation,
  OrderTerm,
  RowCondition,
  SelectItem,
} from "../../../../planner/intent/intent.ts";
import { parseQueryParameters } from "../../../../rest-gateway/table/parse/query-parameters.ts";
import { parseQueryString } from "../../../../rest-gateway/table/parse/query-string.ts";
import { printCondition, printField, printOperation, printOrder, printSelect, quoted } from "./print.ts";

const text = fc.string({ unit: "binary" }).filter((value) => !value.includes("\0"));
const key = fc.oneof(text, fc.constantFrom("id", "or", "not", "order", "limit", "inner", "a.b", 'q"q', "\\", "->"));
const name = key.filter((value) => value !== "");
const identifier = fc.stringMatching(/^[a-zé_$][a-z0-9_]{0,5}( [a-z]{1,3})?$/);
const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: null });

const step = fc.record({
  arrow: fc.constantFrom("->" as const, "->>" as const),
  key: fc.oneof(key, fc.integer({ min: -99, max: 99 })),
});
const field: fc.Arbitrary<FieldReference> = fc.record({ name, path: fc.array(step, { maxLength: 2 }) });

const column = fc.record({
  kind: fc.constant("column" as const),
  field,
  alias: maybe(name),
  cast: maybe(identifier),
  aggregate: maybe(fc.record({ name: fc.constantFrom("sum", "avg", "count", "max", "min"), cast: maybe(identifier) })),
});
const { select } = fc.letrec<{ select: SelectItem[]; item: SelectItem; relation: SelectItem }>((tie) => ({
  select: fc.array(tie("item"), { maxLength: 3, depthIdentifier: "select" }),
  item: fc.oneof({ depthIdentifier: "select" }, column as fc.Arbitrary<SelectItem>, tie("relation")),
  relation: fc
    .record({
      kind: fc.constant("relation" as const),
      name: name.filter((value) => value !== "count"),
      alias: maybe(name),
      hint: maybe(name),
      join: maybe(fc.constantFrom("inner" as const, "left" as const)),
      spread: fc.boolean(),
      select: tie("select"),
    })
    .map((relation) => (relation.spread ? { ...relation, alias: null } : relation)),
}));

const operation = fc.oneof<fc.Arbitrary<FilterOperation>[]>(
  fc.record({
    kind: fc.constant("compare" as const),
    operator: fc.constantFrom("eq", "gt", "gte", "lt", "lte", "match", "imatch"),
    quantifier: maybe(fc.constantFrom("any" as const, "all" as const)),
    value: text,
  }),
  fc.record({
    kind: fc.constant("compare" as const),
    operator: fc.constantFrom("like", "ilike"),
    quantifier: maybe(fc.constantFrom("any" as const, "all" as const)),
    value: text.filter((value) => !value.includes("*")),
  }),
  fc.record({
    kind: fc.constant("compare" as const),
    operator: fc.constantFrom("neq", "cs", "cd", "ov", "sl", "sr", "nxr", "nxl", "adj"),
    quantifier: fc.constant(null),
    value: text,
  }),
  fc.record({
    kind: fc.constant("in" as const),
    values: fc.array(text).filter((values) => values.length !== 1 || values[0] !== ""),
  }),
  fc.record({
    kind: fc.constant("is" as const),
    value: fc.constantFrom("null", "not_null", "true", "false", "unknown"),
  }),
  fc.record({ kind: fc.constant("isdistinct" as const), value: text }),
  fc.record({
    kind: fc.constant("search" as const),
    operator: fc.constantFrom("fts", "plfts", "phfts", "wfts"),
    language: maybe(identifier),
    value: text,
  }),
);
type Filter = Extract<RowCondition, { kind: "filter" }>;
const filter: fc.Arbitrary<Filter> = fc.record({
  kind: fc.constant("filter" as const),
  field,
  negated: fc.boolean(),
  operation,
});
type Group = Extract<RowCondition, { kind: "and" | "or" }>;
type Related = Extract<RowCondition, { kind: "related" }>;
const { group } = fc.letrec<{ group: Group; related: Related; condition: RowCondition }>((tie) => ({
  group: fc.record({
    kind: fc.constantFrom("and" as const, "or" as const),
    negated: fc.boolean(),
    conditions: fc.array(tie("condition"), { minLength: 1, maxLength: 3, depthIdentifier: "logic" }),
  }),
  related: fc.record({
    kind: fc.constant("related" as const),
    relation: name,
    negated: fc.boolean(),
    condition: tie("condition"),
  }),
  condition: fc.oneof({ depthIdentifier: "logic" }, filter as fc.Arbitrary<RowCondition>, tie("group"), tie("related")),
}));

const term: fc.Arbitrary<OrderTerm> = fc.record({
  field,
  relation: maybe(name),
  direction: maybe(fc.constantFrom("asc" as const, "desc" as const)),
  nulls: maybe(fc.constantFrom("first" as const, "last" as const)),
});

const path = fc.array(
  name.filter((value) => value !== "not"),
  { maxLength: 2 },
);
const prefixOf = (names: readonly string[]) => names.map((part) => `${quoted(part)}.`).join("");

function parse(parameters: readonly (readonly [string, string])[]) {
  const written = parameters.map((pair) => pair.map(encodeURIComponent).join("=")).join("&");
  return parseQueryParameters(parseQueryString(written), { withArguments: false });
}

describe("a printed request is parsed again", () => {
  test("select", () => {
    fc.assert(
      fc.property(
        select.filter((items) => items.length > 0),
        (items) => {
          expect(parse([["select", printSelect(items)]]).select).toEqual(items);
        },
      ),
    );
  });

  test("filters", () => {
    fc.assert(
      fc.property(path, filter, (place, value) => {
        const written = (value.negated ? "not." : "") + printOperation(value.operation, String);
        const { conditions } = parse([[prefixOf(place) + printField(value.field), written]]);
        expect(conditions).toEqual([{ path: place, value }]);
      }),
    );
  });

  test("logic trees", () => {
    fc.assert(
      fc.property(path, group, (place, value) => {
        const { kind, negated, conditions } = value;
        const parameter = `${prefixOf(place)}${negated ? "not." : ""}${kind}`;
        const written = `(${conditions.map(printCondition).join()})`;
        expect(parse([[parameter, written]]).conditions).toEqual([{ path: place, value }]);
      }),
    );
  });

  test("order", () => {
    fc.assert(
      fc.property(path, fc.array(term, { minLength: 1, maxLength: 3 }), (place, value) => {
        expect(parse([[`${prefixOf(place)}order`, printOrder(value)]]).orders).toEqual([{ path: place, value }]);
      }),
    );
  });

  test("columns and on_conflict", () => {
    fc.assert(
      fc.property(fc.array(name, { minLength: 1 }), (names) => {
        const written = names.map(quoted).join();
        expect(
          parse([
            ["columns", written],
            ["on_conflict", written],
          ]),
        ).toMatchObject({ columns: names, onConflict: names });
      }),
    );
  });
});
