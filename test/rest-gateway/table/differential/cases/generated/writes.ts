import fc from "fast-check";
import { patch, post, remove } from "../../case.ts";
import { filterOf, words } from "./vocabulary.ts";

const values = {
  name: fc.oneof(words, fc.constant(null)),
  quantity: fc.oneof(fc.integer({ min: -1, max: 99 }), fc.constantFrom(null, "7")),
  note: fc.oneof(words, fc.constant(null)),
  extra: fc.jsonValue({ maxDepth: 2 }).filter((value) => !JSON.stringify(value).includes("\\u")),
};
type Key = keyof typeof values;

const keys = fc.subarray(Object.keys(values) as Key[], { minLength: 1 });
const itemOf = (chosen: readonly Key[]) => fc.record(Object.fromEntries(chosen.map((key) => [key, values[key]])));
const preferences = fc
  .tuple(
    fc.constantFrom("", "return=minimal", "return=headers-only", "return=representation"),
    fc.constantFrom("", "", "missing=default"),
    fc.constantFrom("", "", "count=exact"),
    fc.constantFrom("", "", "", "resolution=merge-duplicates", "resolution=ignore-duplicates"),
  )
  .map((parts) => parts.filter((part) => part !== "").join(", "))
  .map((prefer) => (prefer === "" ? {} : { prefer }));
const selects = fc.constantFrom(
  "",
  "?select=id,name",
  "?select=name,quantity::text",
  "?select=*",
  "?columns=name,quantity&select=name,quantity",
);

export const inserting = keys.chain((chosen) =>
  fc
    .tuple(fc.oneof(itemOf(chosen), fc.array(itemOf(chosen), { maxLength: 3 })), selects, preferences)
    .map(([body, select, options]) => post(`/items${select}`, body, options)),
);

const keyedRow = fc.record({
  code: fc.constantFrom("one", "two", "q", "r"),
  name: fc.constantFrom("One", "Two", "Q", null),
  n: fc.integer({ min: 0, max: 9 }),
});
export const upserting = fc
  .tuple(
    fc.array(keyedRow, { maxLength: 3 }),
    fc.constantFrom("", "?on_conflict=name", "?on_conflict=code", "?columns=code,name"),
    preferences,
  )
  .map(([rows, query, options]) => post(`/keyed${query}`, rows, options));

const itemFilters = fc.constantFrom(
  "id=eq.1",
  "id=gt.1",
  "id=in.(1,3,9)",
  "quantity=lt.6",
  "note=is.null",
  "name=like.*a*",
  "or=(id.eq.1,id.eq.3)",
  "not.and=(id.gt.1,id.lt.9)",
);
export const updating = keys.chain((chosen) =>
  fc
    .tuple(itemOf(chosen), itemFilters, preferences)
    .map(([body, filter, options]) => patch(`/items?${filter}&select=id,name,note&order=id`, body, options)),
);

export const deleting = fc
  .tuple(filterOf("labels"), preferences)
  .map(([[column, operation], options]) => remove(`/labels?${column}=${operation}&order=work_id`, options));
