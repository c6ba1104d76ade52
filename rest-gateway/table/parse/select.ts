import {
  type AggregateName,
  ALL_COLUMNS,
  type FieldReference,
  type OrderTerm,
  type SelectedAggregate,
  type SelectedColumn,
  type SelectedRelation,
  type SelectItem,
} from "#planner/intent";
import { takeMeasure } from "./measure.ts";
import { readField, readIdentifier, readName, Scanner, takeField, takeName } from "./scanner.ts";

const STAR_ITEM: SelectedColumn = {
  kind: "column",
  field: ALL_COLUMNS,
  alias: null,
  cast: null,
  aggregate: null,
};

const AGGREGATES = ["sum", "avg", "count", "max", "min"] as const satisfies readonly AggregateName[];

/** The start of an embed, unlike that of a column: at most two hints, then a parenthesis. */
const EMBED_START = /(?:!(?:"(?:[^"\\]|\\.)*"|[\p{L}\d_ $-]+)){0,2}\(/suy;
const JOIN_KIND = /(?:inner|left)(?=[!(])/y;

/** Parses `id,title:data->>name::text,author:users!author_id!inner(name),...tags(label),views.sum()`. */
export function parseSelect(text: string): readonly SelectItem[] {
  return readItems(new Scanner("select parameter", text));
}

export const SELECT_ALL: readonly SelectItem[] = [STAR_ITEM];

/** Reads the items of a list, which may be empty, but an item must follow each comma. */
function readItems(scanner: Scanner): readonly SelectItem[] {
  const first = takeItem(scanner);
  if (first === null) return [];
  const items = [first];
  while (scanner.take(",")) items.push(takeItem(scanner) ?? scanner.fail());
  return items;
}

function takeItem(scanner: Scanner): SelectItem | null {
  const start = scanner.position;
  scanner.skipSpace();
  if (scanner.take("...")) return readSpread(scanner);
  if (scanner.peek("*")) return readStar(scanner);
  const name = takeName(scanner);
  if (name === null) {
    for (const other of ["*", "count()"]) scanner.expectLiteral(other);
    return scanner.position === start ? null : scanner.fail();
  }
  if (!scanner.peek(":") || scanner.peek("::")) return readNamed(scanner, name, null);
  scanner.take(":");
  scanner.expectLiteral(":");
  return readNamed(scanner, readName(scanner), name);
}

function readNamed(scanner: Scanner, name: string, alias: string | null): SelectItem {
  if (scanner.peek("(") || scanner.peek("!")) {
    // A relation called count would look like the aggregate.
    if (name === "count" && scanner.peek("()")) return readCount(scanner, alias);
    if (name !== "count" && scanner.matches(EMBED_START)) return readRelation(scanner, { name, alias, spread: false });
  }
  return readColumn(scanner, name, alias);
}

function readStar(scanner: Scanner): SelectedColumn {
  scanner.take("*");
  if (!looksEnded(scanner)) scanner.fail();
  return STAR_ITEM;
}

function readSpread(scanner: Scanner): SelectedRelation {
  const name = readName(scanner);
  if (scanner.matches(EMBED_START)) return readRelation(scanner, { name, alias: null, spread: true });
  scanner.expectLiteral("!");
  scanner.expectLiteral("(");
  return scanner.fail();
}

function readCount(scanner: Scanner, alias: string | null): SelectedColumn {
  scanner.take("()");
  const cast = readCast(scanner);
  if (!looksEnded(scanner)) scanner.fail();
  return { kind: "column", field: null, alias, cast: null, aggregate: { name: "count", cast } };
}

/** Reads `data->items->0::text`, `views.sum()::int`, `author_id.count(distinct)`, `location.distance((0,0))`. */
function readColumn(scanner: Scanner, name: string, alias: string | null): SelectedColumn {
  const field = withMeasure(scanner, readField(scanner, name));
  const cast = readCast(scanner);
  const aggregate = takeAggregate(scanner);
  const aggregateCast = readCast(scanner);
  if (!looksEnded(scanner)) scanner.fail();
  return {
    kind: "column",
    field,
    alias,
    cast,
    aggregate: aggregate && { ...aggregate, cast: aggregateCast },
  };
}

type EmbedHeader = Pick<SelectedRelation, "name" | "alias" | "spread">;

/** Reads `!inner!author_id(name,books(title))`. */
function readRelation(scanner: Scanner, { name, alias, spread }: EmbedHeader): SelectedRelation {
  let hint: string | null = null;
  let join: SelectedRelation["join"] = null;
  while (scanner.take("!")) {
    const keyword = scanner.takeMatch(JOIN_KIND);
    const name = keyword === null ? readName(scanner) : null;
    join ??= (keyword?.[0] as "inner" | "left" | undefined) ?? null;
    hint ??= name;
  }
  scanner.take("(");
  const select = scanner.nested(readItems);
  if (!scanner.take(")")) scanner.fail();
  scanner.skipSpace();
  return { kind: "relation", name, alias, hint, join, spread, select };
}

function readCast(scanner: Scanner): string | null {
  if (!scanner.take("::")) return null;
  return readIdentifier(scanner);
}

type AggregateCall = Pick<SelectedAggregate, "name" | "distinct">;

function takeAggregate(scanner: Scanner): AggregateCall | null {
  if (!scanner.looksAt(".")) return null;
  const after = scanner.position + 1;
  const name = AGGREGATES.find((candidate) => scanner.text.startsWith(candidate, after));
  if (name === undefined) for (const candidate of AGGREGATES) scanner.expectLiteral(candidate, after);
  else if (scanner.take(`.${name}()`)) return { name };
  else if (scanner.take(`.${name}(distinct)`)) return { name, distinct: true };
  else scanner.expectLiteral("()", after + name.length);
  return null;
}

function withMeasure(scanner: Scanner, field: FieldReference): FieldReference {
  const measure = takeMeasure(scanner);
  return measure === null ? field : { ...field, measure };
}

function looksEnded(scanner: Scanner): boolean {
  return scanner.looksAt(")") || scanner.looksAt(",") || scanner.looksDone();
}

/** Parses `created_at.desc.nullslast,data->>name,author(name).asc,comments.count.desc,location.distance((0,0))`. */
export function parseOrder(text: string): readonly OrderTerm[] {
  const scanner = new Scanner("order", text);
  const terms = [readTerm(scanner)];
  while (scanner.take(",")) terms.push(readTerm(scanner));
  return terms;
}

const COUNT_SUFFIX = /\.count(?=[.,]|$)/y;

function readTerm(scanner: Scanner): OrderTerm {
  const { relation, field } = readSubject(scanner);
  const isCount = relation === null && field.path.length === 0 && !field.measure && scanner.matches(COUNT_SUFFIX);
  if (isCount) scanner.takeMatch(COUNT_SUFFIX);
  const direction = takeSuffix(scanner, "asc") ?? takeSuffix(scanner, "desc");
  const nulls = takeSuffix(scanner, "nullsfirst") ?? takeSuffix(scanner, "nullslast");
  if (!scanner.looksAt(",") && !scanner.looksDone()) scanner.fail();
  const nullsPlace = nulls && (nulls === "nullsfirst" ? "first" : "last");
  return { field, relation, ...(isCount && { by: "count" }), direction, nulls: nullsPlace };
}

/** Reads `created_at`, `author(name)`. */
function readSubject(scanner: Scanner): Pick<OrderTerm, "relation" | "field"> {
  const start = scanner.position;
  const field = takeField(scanner) ?? scanner.fail();
  if (field.path.length === 0 && scanner.peek("(")) {
    scanner.take("(");
    const named = takeField(scanner);
    const related = named && withMeasure(scanner, named);
    if (related !== null && scanner.take(")")) return { relation: field.name, field: related };
    scanner.moveTo(start);
    takeField(scanner);
  }
  return { relation: null, field: withMeasure(scanner, field) };
}

function takeSuffix<Word extends string>(scanner: Scanner, word: Word): Word | null {
  if (scanner.peek(`.${word}`)) {
    scanner.take(`.${word}`);
    return word;
  }
  if (scanner.peek(".")) scanner.expectLiteral(word, scanner.position + 1);
  else scanner.expect("delimiter (.)");
  return null;
}

/** Returns true for distinct. A filter begins with the name of an operator, so a column may be called distinct. */
export function isDistinct(text: string): boolean {
  return text.startsWith("on(");
}

/** Parses `on(author_id,data->>kind)`. */
export function parseDistinct(text: string): readonly FieldReference[] {
  const scanner = new Scanner("distinct", text);
  scanner.take("on(");
  const fields = [takeField(scanner) ?? scanner.fail()];
  while (scanner.take(",")) fields.push(takeField(scanner) ?? scanner.fail());
  if (!scanner.take(")") || !scanner.looksDone()) scanner.fail();
  return fields;
}
