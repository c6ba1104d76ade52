import { createHash } from "node:crypto";
import { generatePgParameterAnalysis, type PgSelectArgumentDigest, pgFromExpressionRuntime, TYPES } from "@dataplan/pg";
import { type SQL, sql } from "@dataplan/pg/pg-sql2";
import {
  equals,
  type FunctionArgument,
  haveValues,
  type OrderSql,
  operatorOf,
  orderExpressionsOf,
  type PagePart,
  type PgRelation,
  type PgTable,
  type RowOrder,
  rowOperatorOf,
  type SchemaResource,
  wholeRow,
} from "#plugins";
import { ApiError, memoizePerObject } from "#runtime";
import { NotCompiled } from "./not-compiled.ts";
import {
  ABSENT,
  argumentValue,
  type CoercedVariables,
  type InputValue,
  MAX_BYTES,
  parameterOf,
  parameterSql,
} from "./operation-values.ts";
import { quoted, REFUSE_SIZE, spellAsString, textLiteral, withoutLineBreaks } from "./spell-value.ts";
import { toPgText } from "./text-values.ts";

/**
 * Concatenates texts, none of which is null. `concat` would look up the output function of each argument, a tenth of the time of a list.
 * The calls form a balanced tree, so that a large text is copied few times.
 */
export function concatenate(pieces: readonly SQL[]): SQL {
  if (pieces.length === 1) return pieces[0]!;
  const middle = Math.ceil(pieces.length / 2);
  return sql`(${concatenate(pieces.slice(0, middle))} operator(pg_catalog.||) ${concatenate(pieces.slice(middle))})`;
}

/** A JSON array of texts, `items` being them with commas between, or null. */
export function arrayOfItems(items: SQL): SQL {
  return concatenate([textLiteral("["), sql`coalesce(${items}, '')`, textLiteral("]")]);
}

/** Rows to read: `from` has the alias `row`. */
export type RowsSelect = {
  readonly row: SQL;
  readonly from: SQL;
  readonly conditions: readonly SQL[];
  readonly groups?: readonly SQL[];
  readonly order: readonly OrderSql[];
  readonly limit: number | null;
  readonly offset: number;
};

/** Selects these outputs of each row. */
export function selectRows(
  { row, from, conditions, groups = [], order, limit, offset }: RowsSelect,
  outputs: SQL,
): SQL {
  const where = conditions.length === 0 ? sql.blank : sql` where ${sql.join(conditions.map(parenthesized), " and ")}`;
  const groupBy = groups.length === 0 ? sql.blank : sql` group by ${sql.join(groups, ", ")}`;
  const by = order.map(({ fragment, direction }) => sql`${fragment} ${direction === "ASC" ? sql`asc` : sql`desc`}`);
  const orderBy = by.length === 0 ? sql.blank : sql` order by ${sql.join(by, ", ")}`;
  const range = sql`${limit === null ? sql.blank : sql` limit ${wholeNumber(limit)}`}${offset === 0 ? sql.blank : sql` offset ${wholeNumber(offset)}`}`;
  return sql`select ${outputs} from ${from} as ${row}${where}${groupBy}${orderBy}${range}`;
}

function parenthesized(condition: SQL): SQL {
  return sql`(${condition})`;
}

export function wholeNumber(value: number): SQL {
  return sql.literal(Math.trunc(value));
}

export function aliasOf({ name }: PgTable): SQL {
  return sql.identifier(Symbol(name));
}

export function tableOf({ remoteResource }: PgRelation): PgTable {
  return remoteResource as PgTable;
}

type KeyArgument = { readonly column: string; readonly argument: string };

/** The conditions that the row has the key that the arguments give. */
export function keyConditions(
  table: PgTable,
  key: readonly KeyArgument[],
  args: ReadonlyMap<string, InputValue>,
  row: SQL,
): SQL[] {
  const columns = key.map(({ column }) => column);
  return haveValues(table, columns, row, (codec, index) => parameterSql(args.get(key[index]!.argument)!, codec));
}

export function reversed<Term extends { readonly direction: "ASC" | "DESC" }>(term: Term): Term {
  return { ...term, direction: term.direction === "ASC" ? "DESC" : "ASC" };
}

/** An expression that is true if a function's row is not null. The row of a view without a NOT NULL column may be null too. */
export function presence(resource: SchemaResource, row: SQL): SQL {
  const check = (resource as object as NullCheckedResource).getNullCheckExpression(row);
  return check ? sql`(${check})::pg_catalog.bool` : sql`true`;
}

/** A method that core's types declare as internal. */
type NullCheckedResource = { getNullCheckExpression(row: SQL): SQL | null };

export function mayBeNullRow({ codec }: PgTable): boolean {
  return !codec.notNullExpression && !Object.values(codec.attributes).some(({ notNull }) => notNull);
}

/** The rows as a JSON array. If it is bounded, one that is larger than the response may be ends the statement. */
export function jsonArrayOf(query: RowsSelect, item: SQL, isBounded = false): SQL {
  const rows = sql.identifier(Symbol("rows"));
  const items = selectRows(query, sql`${item} as "item"`);
  const array = sql`(select ${arrayOfItems(sql`pg_catalog.string_agg(${rows}."item", ',')`)} from (${items}) as ${rows})`;
  return isBounded ? boundedText(array) : array;
}

/** Ends the statement if the text is larger than the response may be. */
function boundedText(text: SQL): SQL {
  const built = sql.identifier(Symbol("built"));
  const maxBytes = parameterOf((variables) => toPgText(variables[MAX_BYTES]), TYPES.int);
  return sql`(select case when pg_catalog.octet_length(${built}."text") operator(pg_catalog.>) ${maxBytes} then ${REFUSE_SIZE} else ${built}."text" end
    from (select ${text} as "text") as ${built})`;
}

/** `__rows__."created_at"`: core's cursors begin with a hash of the order's text. */
const cursorDigestOf = memoizePerObject((order: RowOrder, table: PgTable): string => {
  const expressions = orderExpressionsOf(sql.identifier(Symbol(table.name)), table, order);
  const texts = expressions.map(({ fragment }) => sql.compile(fragment).text);
  return createHash("sha256").update(JSON.stringify(texts)).digest("hex").slice(0, 10);
});

/** The cursor of a row, as a JSON string. */
function cursorSql(table: PgTable, order: RowOrder, row: SQL): SQL {
  const values = orderExpressionsOf(row, table, order).map(({ fragment, codec }) => {
    const text = codec === TYPES.boolean ? sql`${fragment}::pg_catalog.text` : spellAsString(fragment, codec);
    return sql`coalesce(${text}, 'null')`;
  });
  return encodeList(cursorDigestOf(order, table), values);
}

/** Base64 of the list of a text and of these JSON values, as a JSON string. */
export function encodeList(text: string, values: readonly SQL[]): SQL {
  const pieces = values.flatMap((value) => [textLiteral(","), value]);
  const json = concatenate([textLiteral(`["${text}"`), ...pieces, textLiteral("]")]);
  return quoted(withoutLineBreaks(sql`pg_catalog.encode(pg_catalog.convert_to(${json}, 'UTF8'), 'base64')`));
}

/** The list that `encodeList` has encoded; null for other texts. */
export function decodeList(base64: unknown): readonly unknown[] | null {
  try {
    const list: unknown = JSON.parse(Buffer.from(String(base64), "base64").toString("utf8"));
    return Array.isArray(list) ? list : null;
  } catch {
    return null;
  }
}

/** The rows after a cursor in the order, or before it. */
export function beyondCursor(table: PgTable, order: RowOrder, row: SQL, cursor: InputValue, side: CursorSide): SQL {
  const digest = cursorDigestOf(order, table);
  const expressions = orderExpressionsOf(row, table, order);
  const valueAt = (index: number) => (variables: CoercedVariables) => {
    const values = decodeCursor(argumentValue(cursor, variables), side, digest, expressions.length);
    return toPgText(values[index]);
  };
  const terms = expressions.map((expression, index): CursorTerm => {
    const isAscending = (expression.direction === "ASC") === (side === "after");
    return { ...expression, value: parameterOf(valueAt(index), expression.codec), isAscending };
  });
  const [first] = terms;
  const isTuple =
    terms.length > 1 && terms.every(({ isNullable, isAscending }) => !isNullable && isAscending === first!.isAscending);
  if (!isTuple) return beyondTerms(terms);
  const [fragments, values] = [terms.map(({ fragment }) => fragment), terms.map(({ value }) => value)];
  const codecs = terms.map(({ codec }) => codec);
  const operator = rowOperatorOf(codecs, first!.isAscending ? ">" : "<");
  return sql`(${sql.join(fragments, ", ")}) ${operator} (${sql.join(values, ", ")})`;
}

type CursorTerm = OrderSql & { readonly value: SQL; readonly isAscending: boolean };

/** The condition that a row is beyond the cursor. A nullable column has a term before it that says if the column is null. */
function beyondTerms([term, ...others]: readonly CursorTerm[]): SQL {
  const { fragment, value, codec, isNullable, isAscending } = term!;
  const isBeyond = sql`${fragment} ${operatorOf(codec, isAscending ? ">" : "<")} ${value}`;
  if (others.length === 0) return isBeyond;
  const isSame = equals(codec, fragment, value);
  const isEqual = isNullable ? sql`coalesce(${isSame}, ${fragment} is null and ${value} is null)` : isSame;
  return sql`(${isBeyond}) or (${isEqual} and (${beyondTerms(others)}))`;
}

type CursorSide = "after" | "before";

/** The values of the order's expressions. */
function decodeCursor(cursor: unknown, side: CursorSide, digest: string, length: number): readonly unknown[] {
  const list = decodeList(cursor);
  if (!list) throw invalidCursor("Invalid cursor, please enter a cursor from a previous request, or null.");
  const [first, ...values] = list;
  const isPlain = values.every((value) => value === null || typeof value === "string" || typeof value === "boolean");
  if (first === digest && values.length === length && isPlain) return values;
  throw invalidCursor(
    `Invalid '${side}' cursor - a cursor is only valid within a specific ordering, if you change the order then you'll need different cursors.`,
  );
}

function invalidCursor(message: string): ApiError {
  return new ApiError("invalid", "VALIDATION_ERROR", message);
}

/** The request of a connection for a page of rows. */
export type PageQuery = {
  readonly table: PgTable;
  readonly order: RowOrder;
  readonly isOrderRequested: boolean;
  readonly row: SQL;
  readonly conditions: readonly SQL[];
  readonly after: InputValue | null;
  readonly before: InputValue | null;
  readonly isReverse: boolean;
  readonly size: number;
};

/**
 * The parts of a page: columns of its rows, and arrays of texts that are made of these. In a page from the end the rows are read in
 * reverse.
 */
export class PageParts {
  readonly columns: SQL[] = [];
  readonly arrays: SQL[] = [];
  readonly #page: PageQuery;
  /** The subqueries of the columns and of the arrays. */
  readonly read = sql.identifier(Symbol("read"));
  readonly rows = sql.identifier(Symbol("page"));
  #cursor: SQL | null = null;
  #cursors: SQL | null = null;
  /** An array with an item per row. */
  #counted: SQL | null = null;
  /** True if one row more is read, which shows if there is a further page. */
  looksAhead = false;

  constructor(page: PageQuery) {
    this.#page = page;
  }

  /** Adds a column with this value of each row, and returns the reference to it. */
  column(value: SQL): SQL {
    this.columns.push(value);
    return sql`${this.read}.${sql.identifier(`text${this.columns.length}`)}`;
  }

  /** The cursors of the rows, which edges and page info share. */
  cursor(): SQL {
    const { table, order, row } = this.#page;
    this.#cursor ??= this.column(cursorSql(table, order, row));
    return this.#cursor;
  }

  /** An array of a text of each row. */
  arrayOf(text: SQL): SQL {
    this.arrays.push(text);
    return sql`${this.rows}.${sql.identifier(`texts${this.arrays.length}`)}`;
  }

  items(edge: SQL, isBounded: boolean): SQL {
    if (this.#page.size === 0) return textLiteral("[]");
    const texts = this.arrayOf(edge);
    this.#counted ??= texts;
    const items = this.#itemsOf(texts);
    return isBounded ? boundedText(items) : items;
  }

  #itemsOf(texts: SQL): SQL {
    const size = wholeNumber(this.#page.size);
    if (!this.#page.isReverse) return arrayOfItems(sql`pg_catalog.array_to_string(${texts}[1:${size}], ',')`);
    const [items, position] = [sql.identifier(Symbol("items")), sql.identifier("position")];
    const list = sql`pg_catalog.string_agg(${items}."item", ',' order by ${items}.${position} desc)`;
    return sql`(select ${arrayOfItems(list)}
      from pg_catalog.unnest(${texts}[1:${size}]) with ordinality as ${items}("item", ${position}))`;
  }

  info(part: PagePart): SQL | null {
    const { isReverse, after, before } = this.#page;
    const [hasAfter, hasBefore] = [after !== null, before !== null];
    switch (part) {
      case "hasNextPage":
        return isReverse ? textLiteral(String(hasBefore)) : this.#hasMore(hasBefore);
      case "hasPreviousPage":
        return isReverse ? this.#hasMore(hasAfter) : textLiteral(String(hasAfter));
      case "startCursor":
        return isReverse ? this.#lastCursor() : this.#firstCursor();
      case "endCursor":
        return isReverse ? this.#firstCursor() : this.#lastCursor();
      default:
        return null;
    }
  }

  #hasMore(isKnown: boolean): SQL {
    // An empty page has no page beside it, except one that the request's cursors prove.
    if (isKnown || this.#page.size === 0) return textLiteral(String(isKnown));
    this.looksAhead = true;
    this.#counted ??= this.arrayOf(textLiteral(""));
    return sql`case when pg_catalog.cardinality(${this.#counted}) > ${wholeNumber(this.#page.size)} then 'true' else 'false' end`;
  }

  #firstCursor(): SQL {
    if (this.#page.size === 0) return textLiteral("null");
    return sql`coalesce(${this.#cursorTexts()}[1], 'null')`;
  }

  #lastCursor(): SQL {
    if (this.#page.size === 0) return textLiteral("null");
    const texts = this.#cursorTexts();
    return sql`coalesce(${texts}[least(pg_catalog.cardinality(${texts}), ${wholeNumber(this.#page.size)})], 'null')`;
  }

  #cursorTexts(): SQL {
    this.#cursors ??= this.arrayOf(this.cursor());
    this.#counted ??= this.#cursors;
    return this.#cursors;
  }
}

/** A call of a function. */
export function callSql(
  { name, from, parameters }: SchemaResource,
  args: readonly FunctionArgument[],
  given: ReadonlyMap<string, InputValue>,
  row: SQL | null,
): SQL {
  if (typeof from !== "function") throw new NotCompiled("field", name);
  const digests = args.map(({ argument, name: parameter, codec }): Digest => {
    const value = given.get(argument) ?? ABSENT;
    const own = parameter === undefined ? {} : { name: parameter };
    return value.kind === "absent" ? { ...own, value: undefined } : { ...own, placeholder: parameterSql(value, codec) };
  });
  const all = row ? [{ placeholder: wholeRow(row) }, ...digests] : digests;
  return pgFromExpressionRuntime(from, parameters, all as Digest[], generatePgParameterAnalysis(parameters));
}

type Digest = Parameters<typeof pgFromExpressionRuntime>[2][number] & Partial<PgSelectArgumentDigest>;

/** All rows of a table that meet the conditions. */
export function rowsOf(table: PgTable, row: SQL, conditions: readonly SQL[]): RowsSelect {
  return { row, from: table.from as SQL, conditions, order: [], limit: null, offset: 0 };
}

/** The row of a table that has this key. */
export function rowOf(table: PgTable, row: SQL, conditions: readonly SQL[]): RowsSelect {
  return { ...rowsOf(table, row, conditions), limit: table.extensions?.mayRepeatKeys ? 1 : null };
}
