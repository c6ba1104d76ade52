import fc from "fast-check";
import type {
  CursorPage,
  FieldReference,
  FilterOperation,
  Intent,
  OrderTerm,
  ResponseFormat,
  ResponseOptions,
  RowCondition,
  RowSelection,
  SelectItem,
  WithEmbedPath,
} from "../../planner/intent/intent.ts";

/** Texts that stand for names, JSON keys, types and languages, and those that stand for values. */
export type Texts = { readonly name: fc.Arbitrary<string>; readonly value: fc.Arbitrary<string> };

/** Intents of every kind for the fixture. Tables and relations are real, or there would be nothing but refusals. */
export function intents(texts: Texts): fc.Arbitrary<Intent> {
  const selection = selections(texts);
  const count = fc.constantFrom(null, "exact", "planned", "estimated");
  const returned = fc.constantFrom("nothing", "headers", "rows");
  const target = fc.constant({ schema: "api", name: "works" });
  const payload = fc.record({
    json: texts.value.map((value) => Buffer.from(JSON.stringify([{ title: value }]))),
    columns: fc.subarray(["title", "year", "artist_id"]),
    isArray: fc.boolean(),
  });
  const write = { target, selection, count, returned };
  const upsert = fc.option(
    fc.record({
      resolution: fc.constantFrom("merge", "ignore"),
      onConflict: fc.option(fc.array(texts.name, { minLength: 1, maxLength: 2 })),
    }),
  );
  return fc.oneof(
    fc.record({ kind: fc.constant("read"), target, selection, count, page: pages }),
    fc.record({
      kind: fc.constant("insert"),
      ...write,
      payload,
      missingAsDefault: fc.boolean(),
      upsert,
      single: fc.boolean(),
    }),
    fc.record({ kind: fc.constant("update"), ...write, payload, missingAsDefault: fc.boolean() }),
    fc.record({ kind: fc.constant("delete"), ...write }),
    fc.record({
      kind: fc.constant("call"),
      target: fc
        .constantFrom("all_works", "defaults", "prefix_words", "echo_json")
        .map((name) => ({ schema: "api", name })),
      argument: calls(texts),
      selection,
      count,
      page: pages,
      readOnly: fc.boolean(),
    }),
  ) as fc.Arbitrary<Intent>;
}

export function manners(name: fc.Arbitrary<string>): fc.Arbitrary<ResponseOptions> {
  const media: fc.Arbitrary<ResponseFormat> = fc.oneof(
    fc.record({ kind: fc.constant("media" as const), type: fc.constantFrom("application/json", "text/csv", "*/*") }),
    fc.record({ kind: fc.constant("media" as const), type: name }),
    fc.record({
      kind: fc.constant("object" as const),
      type: fc.constant("x/object"),
      nulls: fc.constantFrom("kept" as const, "stripped" as const),
    }),
  );
  return fc.record({
    formats: fc.array(media, { minLength: 1, maxLength: 2 }),
    includesBody: fc.boolean(),
    maxAffected: fc.option(fc.nat(3)),
  });
}

const pages: fc.Arbitrary<CursorPage | null> = fc.oneof(
  { weight: 4, arbitrary: fc.constant(null) },
  fc.constant({ kind: "first" as const }),
);

function calls({ name, value }: Texts): fc.Arbitrary<object> {
  const names = fc.oneof(fc.constantFrom("a", "b", "prefix", "words"), name);
  return fc.oneof(
    fc.record({ kind: fc.constant("query"), values: fc.array(fc.tuple(names, value), { maxLength: 3 }) }),
    fc.record({
      kind: fc.constant("json"),
      body: fc.constantFrom(Buffer.from("{}"), Buffer.from("[]")),
      names: fc.option(fc.array(names, { maxLength: 2 })),
    }),
  );
}

function selections(texts: Texts): fc.Arbitrary<RowSelection> {
  const place = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<WithEmbedPath<T>> =>
    fc.record({ path: fc.constantFrom([], [], ["artists"]), value });
  const any = fc.record({
    select: items(texts, 2),
    conditions: fc.array(place(conditions(texts)), { maxLength: 3 }),
    orders: fc.array(place(fc.array(terms(texts), { minLength: 1, maxLength: 2 })), { maxLength: 2 }),
    ranges: fc.array(place(fc.record({ offset: fc.nat(2), limit: fc.option(fc.nat(3)) })), { maxLength: 2 }),
  });
  return any.map(fitting);
}

/** Removes the parts that name a relation which is not there. */
function fitting({ select, conditions, orders, ranges }: RowSelection): RowSelection {
  const relations = select.filter((item) => item.kind === "relation");
  const isThere = ({ path }: WithEmbedPath<unknown>) => path.length === 0 || relations.length > 0;
  const isPlain = relations.some(({ alias }) => alias === null);
  const withoutRelation = ({ path, value }: WithEmbedPath<readonly OrderTerm[]>) => ({
    path,
    value: value.map((term) => (isPlain && path.length === 0 ? term : { ...term, relation: null })),
  });
  return {
    select,
    conditions: conditions.filter(isThere),
    orders: orders.filter(isThere).map(withoutRelation),
    ranges: ranges.filter(isThere),
  };
}

function items(texts: Texts, depth: number): fc.Arbitrary<SelectItem[]> {
  const alias = fc.option(texts.name, { freq: 1 });
  const column = fc.record({
    kind: fc.constant("column"),
    field: fc.option(fields(texts), { freq: 5 }),
    alias,
    cast: fc.option(fc.oneof(fc.constantFrom("text", "int"), texts.name), { freq: 1 }),
    aggregate: fc.option(
      fc.record({ name: fc.constantFrom("count", "max"), cast: fc.option(texts.name, { freq: 1 }) }),
      { freq: 1 },
    ),
  });
  const counted = column.map((each) =>
    each.field === null ? { ...each, aggregate: { name: "count", cast: null } } : each,
  );
  const relation = (name: string, inner: fc.Arbitrary<SelectItem[]>) =>
    fc.record({
      kind: fc.constant("relation"),
      name: fc.constant(name),
      alias,
      hint: fc.constantFrom(null, null, "artist_id"),
      join: fc.constantFrom(null, "inner", "left"),
      spread: fc.boolean(),
      select: inner,
    });
  const inner = depth > 0 ? items(texts, depth - 1) : fc.constant<SelectItem[]>([]);
  const all = depth === 2 ? fc.oneof({ weight: 3, arbitrary: counted }, relation("artists", inner)) : counted;
  return fc.array(all as fc.Arbitrary<SelectItem>, { maxLength: 3 });
}

function fields({ name }: Texts): fc.Arbitrary<FieldReference> {
  const arrow = fc.constantFrom("->" as const, "->>" as const);
  const step = fc.record({ arrow, key: fc.oneof(name, fc.integer({ min: -2, max: 2 })) });
  return fc.record({
    name: fc.oneof(fc.constantFrom("id", "title", "details", "*"), name),
    path: fc.array(step, { maxLength: 2 }),
  });
}

function conditions(texts: Texts): fc.Arbitrary<RowCondition> {
  const negated = fc.boolean();
  const filter = fc.record({
    kind: fc.constant("filter"),
    field: fields(texts),
    negated,
    operation: operations(texts),
  });
  const group = fc.record({
    kind: fc.constantFrom("and", "or"),
    negated,
    conditions: fc.array(filter, { minLength: 1, maxLength: 2 }),
  });
  const related = fc.record({
    kind: fc.constant("related"),
    relation: fc.constantFrom("artists", "labels"),
    negated,
    condition: filter,
  });
  return fc.oneof({ weight: 4, arbitrary: filter }, group, related) as fc.Arbitrary<RowCondition>;
}

function operations({ name, value }: Texts): fc.Arbitrary<FilterOperation> {
  return fc.oneof(
    fc.record({
      kind: fc.constant("compare"),
      operator: fc.constantFrom("eq", "neq", "gt", "like", "cs", "match"),
      quantifier: fc.constantFrom(null, null, "any", "all"),
      value,
    }),
    fc.record({ kind: fc.constant("in"), values: fc.array(value, { maxLength: 3 }) }),
    fc.record({ kind: fc.constant("is"), value: fc.constantFrom("null", "not_null", "true", "unknown") }),
    fc.record({ kind: fc.constant("isdistinct"), value }),
    fc.record({
      kind: fc.constant("search"),
      operator: fc.constantFrom("fts", "wfts"),
      language: fc.option(fc.oneof(fc.constant("english"), name)),
      value,
    }),
  ) as fc.Arbitrary<FilterOperation>;
}

function terms(texts: Texts): fc.Arbitrary<OrderTerm> {
  return fc.record({
    field: fields(texts),
    relation: fc.constantFrom(null, null, null, "artists"),
    direction: fc.constantFrom(null, "asc" as const, "desc" as const),
    nulls: fc.constantFrom(null, "first" as const, "last" as const),
  });
}
