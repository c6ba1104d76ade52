import fc from "fast-check";
import { expect, test } from "vitest";
import type { DataType } from "../../../catalog/data-types.ts";
import type { RowChange } from "../../../live/stream/changes.ts";
import type { ChangeAudience, SubscriberGroup } from "../../../realtime/changes/audience.ts";
import type { Binding } from "../../../realtime/changes/binding.ts";
import { BindingIndex } from "../../../realtime/changes/binding-index.ts";
import { makeRowFilter } from "../../../realtime/changes/row-filter.ts";
import { propertyRuns } from "../../property-runs.ts";

const TABLE = 1;
const COLUMNS = [
  { name: "id", typeName: "int4", isIdentity: true },
  { name: "room", typeName: "int8", isIdentity: false },
  { name: "author", typeName: "text", isIdentity: false },
  { name: "is_open", typeName: "bool", isIdentity: false },
];
const relation = { oid: TABLE, schema: "public", name: "notes", columns: COLUMNS } as unknown as RowChange["relation"];

const number = fc.integer({ min: -3, max: 3 }).map(String);
const author = fc.constantFrom("ann", "Ann", "bob", "");
const cells = [number, fc.option(number), fc.option(author), fc.constantFrom("t", "f", null)] as const;
const row = fc.tuple(...cells).map((values) => [...values]);

const filter = fc
  .record({
    at: fc.integer({ min: 0, max: 3 }),
    operator: fc.constantFrom("eq", "in", "neq", "lt", "lte", "gt", "gte", "isdistinct"),
    negated: fc.boolean(),
    numbers: fc.array(number, { minLength: 1, maxLength: 3 }),
    authors: fc.array(author, { minLength: 1, maxLength: 3 }),
  })
  .map(({ at, operator, negated, numbers, authors }) => {
    const { name: column, typeName } = COLUMNS[at]!;
    const all = [numbers, numbers, authors, ["t"]][at]!;
    const isOrder = ["lt", "lte", "gt", "gte"].includes(operator);
    const used = isOrder && at > 1 ? "eq" : operator;
    const values = used === "in" ? all : all.slice(0, 1);
    const type = { schema: "pg_catalog", name: typeName } as DataType;
    return makeRowFilter({ column, negated, operator: used as "eq", values }, values, type);
  });

const binding = fc.record({
  event: fc.constantFrom("*", "INSERT", "UPDATE", "DELETE"),
  filters: fc.array(filter, { maxLength: 3 }),
}) as unknown as fc.Arbitrary<Binding>;

const change = fc
  .record({ kind: fc.constantFrom("INSERT", "UPDATE", "DELETE"), before: row, after: row, hasOld: fc.boolean() })
  .map(({ kind, before, after, hasOld }): RowChange => {
    const [key] = before;
    const old = hasOld || kind === "DELETE" ? [key, undefined, undefined, undefined] : null;
    const added = kind === "UPDATE" && !hasOld ? [key, ...after.slice(1)] : after;
    return { kind, relation, index: 0, old: kind === "INSERT" ? null : old, new: kind === "DELETE" ? null : added };
  });

function matches({ event, filters }: Binding, { kind, old, new: added }: RowChange): boolean {
  const isOfKind = event === "*" || event === kind || (event === "DELETE" && kind === "UPDATE");
  const rows = [old, added].filter((each) => each !== null);
  const cellOf = (cellsOfRow: (typeof rows)[number], column: string) =>
    cellsOfRow[COLUMNS.findIndex(({ name }) => name === column)];
  return isOfKind && rows.some((each) => filters.every((one) => one.matches(cellOf(each, one.column), () => null)));
}

test("the index finds the groups that are found by asking each binding", () => {
  let found = 0;
  let asked = 0;
  fc.assert(
    fc.property(fc.array(fc.array(binding, { maxLength: 3 }), { maxLength: 8 }), change, (bindings, changed) => {
      const groups = bindings.map((of) => ({ members: [{ bindings: of }] }) as unknown as SubscriberGroup);
      const index = new BindingIndex({ table: { oid: TABLE }, groups } as unknown as ChangeAudience);
      const wanted = groups.filter((_, at) => bindings[at]!.some((each) => matches(each, changed)));
      const actual = index.groupsOf(changed, (each) => {
        asked++;
        return matches(each, changed);
      });
      expect(actual).toEqual(new Set(wanted));
      found += wanted.length;
    }),
    { numRuns: propertyRuns(10_000) },
  );
  expect(found).toBeGreaterThan(0);
  expect(asked).toBeGreaterThan(0);
});

test("a thousand bindings with other values are not asked", () => {
  const type = { schema: "pg_catalog", name: "int8" } as DataType;
  const groups = Array.from({ length: 1_000 }, (_, room) => {
    const filters = [
      makeRowFilter({ column: "room", negated: false, operator: "eq", values: [`${room}`] }, [`${room}`], type),
    ];
    return { members: [{ bindings: [{ event: "*", filters }] }] } as unknown as SubscriberGroup;
  });
  const index = new BindingIndex({ table: { oid: TABLE }, groups } as unknown as ChangeAudience);
  const inserted: RowChange = { kind: "INSERT", relation, index: 0, old: null, new: ["1", "7", null, "t"] };
  let asked = 0;
  const found = index.groupsOf(inserted, () => ++asked > 0);
  expect([...found]).toEqual([groups[7]]);
  expect(asked).toBe(1);
});
