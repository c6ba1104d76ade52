import { crc32 } from "node:zlib";
import { HttpError } from "#http";
import type {
  CursorPage,
  CursorPosition,
  FieldReference,
  OrderTerm,
  RowCondition,
  RowRange,
  SelectItem,
  WithEmbedPath,
} from "#planner/intent";
import { parseFilter, parseLogic, parseQuantified } from "./filter.ts";
import { isSearch, parseSearch } from "./measure.ts";
import { memoizeParser } from "./memoize-parser.ts";
import type { UrlParameter } from "./query-string.ts";
import { parseColumns, parseLogicPath, parsePath } from "./scanner.ts";
import { isDistinct, parseDistinct, parseOrder, parseSelect, SELECT_ALL } from "./select.ts";

export type QueryParameters = {
  readonly select: readonly SelectItem[];
  readonly conditions: readonly WithEmbedPath<RowCondition>[];
  readonly having: readonly WithEmbedPath<RowCondition>[];
  readonly distinct: readonly WithEmbedPath<readonly FieldReference[]>[];
  readonly orders: readonly WithEmbedPath<readonly OrderTerm[]>[];
  readonly bounds: readonly RangeBounds[];
  readonly page: CursorPage | null;
  readonly columns: readonly string[] | null;
  readonly onConflict: readonly string[] | null;
  /** The arguments of a function called by GET. */
  readonly arguments: readonly UrlParameter[];
};

// Clients repeat the same texts.
const parseSelectCached = memoizeParser(parseSelect);
const parseOrderCached = memoizeParser(parseOrder);
const parsePathCached = memoizeParser(parsePath);

/** Sorts parameters by their subject. With `withArguments`, one whose value names no operator is an argument. */
export function parseQueryParameters(
  parameters: readonly UrlParameter[],
  { withArguments }: { withArguments: boolean },
): QueryParameters {
  const sorter = new ParameterSorter(withArguments);
  for (const [name, value] of parameters) sorter.add(name, value);
  return sorter.sorted();
}

class ParameterSorter {
  #select: readonly SelectItem[] | null = null;
  #columns: readonly string[] | null = null;
  #onConflict: readonly string[] | null = null;
  #page: CursorPage | null = null;
  readonly #conditions: WithEmbedPath<RowCondition>[] = [];
  readonly #having: WithEmbedPath<RowCondition>[] = [];
  readonly #distinct: WithEmbedPath<readonly FieldReference[]>[] = [];
  readonly #orders: WithEmbedPath<readonly OrderTerm[]>[] = [];
  readonly #bounds = new Map<string, RangeBounds>();
  readonly #arguments: UrlParameter[] = [];
  readonly #withArguments: boolean;

  constructor(withArguments: boolean) {
    this.#withArguments = withArguments;
  }

  add(name: string, value: string): void {
    const lastDot = name.lastIndexOf(".");
    switch (name.slice(lastDot + 1)) {
      case "order":
        this.#orders.push({ path: embedPathOf(name), value: readOrder(value) });
        break;
      case "having":
        if (value.startsWith("(") && !this.#withArguments)
          this.#having.push({ path: embedPathOf(name), value: parseLogic("and", value) });
        else this.#addFilter(name, value);
        break;
      case "distinct":
        if (isDistinct(value) && !this.#withArguments)
          this.#distinct.push({ path: embedPathOf(name), value: parseDistinct(value) });
        else this.#addFilter(name, value);
        break;
      case "search":
        if (isSearch(value) && !this.#withArguments)
          this.#conditions.push({ path: embedPathOf(name), value: parseSearch(value) });
        else this.#addFilter(name, value);
        break;
      case "limit":
        this.#setBound(name.slice(0, lastDot + 1), { path: embedPathOf(name), limit: parseBound(value) });
        break;
      case "offset":
        this.#setBound(name.slice(0, lastDot + 1), { path: embedPathOf(name), offset: parseBound(value) });
        break;
      case "and":
      case "or":
        this.#addLogic(name, value);
        break;
      default:
        if (name === "select") this.#select ??= parseSelectCached(value);
        else if (name === "columns") this.#columns ??= parseColumns(name, value);
        else if (name === "on_conflict") this.#onConflict ??= parseColumns(name, value);
        else if (name === "cursor" && isCursor(value)) this.#setCursor(name, value);
        else this.#addFilter(name, value);
    }
  }

  sorted(): QueryParameters {
    return {
      select: this.#select?.length ? this.#select : SELECT_ALL,
      conditions: this.#conditions,
      having: this.#having,
      distinct: this.#distinct,
      orders: this.#orders,
      bounds: [...this.#bounds.values()],
      page: this.#page,
      columns: this.#columns,
      onConflict: this.#onConflict,
      arguments: this.#arguments,
    };
  }

  #setBound(path: string, bound: Pick<RangeBounds, "path"> & Partial<RangeBounds>): void {
    this.#bounds.set(path, { limit: null, offset: null, ...this.#bounds.get(path), ...bound });
  }

  #addLogic(name: string, value: string): void {
    const { path, operator } = parseLogicPath(name);
    this.#conditions.push({ path, value: parseLogic(operator, value) });
  }

  /** Sets the cursor, and keeps it as an argument, since only the catalogue knows whether the function has one of that name. */
  #setCursor(name: string, value: string): void {
    this.#page ??= parseCursor(value);
    if (this.#withArguments) this.#arguments.push([name, value]);
  }

  #addFilter(name: string, value: string): void {
    const { path, field } = parsePathCached(name);
    const quantified = this.#withArguments ? null : parseQuantified(field, value);
    const condition = quantified ?? parseFilter(field, value, { orArgument: this.#withArguments });
    if (condition === null) this.#arguments.push([field.name, value]);
    else this.#conditions.push({ path, value: condition });
  }
}

/** Reads an order, from the cache only without parameters: these are found by the identity of their operation, so two orders may not share one. */
function readOrder(text: string): readonly OrderTerm[] {
  return text.includes("(") ? parseOrder(text) : parseOrderCached(text);
}

/** Returns the embed path of `author.order` and similar parameters. */
function embedPathOf(name: string): readonly string[] {
  return name.includes(".") ? parsePath(name).path : [];
}

/** The values of limit and offset; the last of each counts. */
type RangeBounds = {
  readonly path: readonly string[];
  readonly limit: number | null;
  readonly offset: number | null;
};

/** Parses a bound; null if the text is not an integer: the parameter is then ignored. */
export function parseBound(text: string): number | null {
  if (!/^\s*-?\d+\s*$/.test(text)) return null;
  return Math.min(Number(text), Number.MAX_SAFE_INTEGER);
}

type RangeRequest = { readonly method: string; readonly range: string | undefined };

/** Returns the requested range at each path; paths without one are omitted. */
export function parseRanges(
  bounds: Iterable<RangeBounds>,
  { method, range }: RangeRequest,
): readonly WithEmbedPath<RowRange>[] {
  const ranges: WithEmbedPath<RowRange>[] = [];
  let top: RowRange = { offset: 0, limit: null };
  for (const { path, limit, offset } of bounds) {
    if (path.length === 0) top = toTopRange(limit, offset ?? 0);
    // Postgres reports negative numbers.
    else ranges.push({ path, value: { limit, offset: offset ?? 0 } });
  }
  if (method === "GET" && range !== undefined) top = intersectRangeHeader(top, range);
  const isWhole = top.limit === null && top.offset === 0;
  if (method === "PUT" && !isWhole) {
    throw new HttpError(400, "PGRST114", "limit/offset querystring parameters are not allowed for PUT");
  }
  return isWhole ? ranges : [{ path: [], value: top }, ...ranges];
}

/** The numbers of the first and the last row, from 0, both included. */
type RowNumbers = { readonly first: number; readonly last: number };

function toTopRange(limit: number | null, offset: number): RowRange {
  if (limit === null) return { limit, offset: Math.max(offset, 0) };
  if (limit === 0 && offset === 0) return { limit, offset };
  return toRowRange({ first: Math.max(offset, 0), last: offset + limit - 1 });
}

/** Narrows the range of the parameters by the header. An invalid header is ignored (RFC 9110 §14.2). */
function intersectRangeHeader(range: RowRange, header: string): RowRange {
  const match = /^(\d+)-(\d*)$/.exec(header);
  if (match === null || range.limit === 0) return range;
  const first = parseBound(match[1]!)!;
  const last = parseBound(match[2]!) ?? Number.POSITIVE_INFINITY;
  if (first > last) {
    throw rangeNotSatisfiable(
      "The lower boundary must be lower than or equal to the upper boundary in the Range header.",
    );
  }
  const end = range.limit === null ? Number.POSITIVE_INFINITY : range.offset + range.limit - 1;
  return toRowRange({ first: Math.max(first, range.offset), last: Math.min(last, end) });
}

function toRowRange({ first, last }: RowNumbers): RowRange {
  if (first > last) throw rangeNotSatisfiable("Limit should be greater than or equal to zero.");
  return { offset: first, limit: last === Number.POSITIVE_INFINITY ? null : last - first + 1 };
}

function rangeNotSatisfiable(details: string): HttpError {
  return new HttpError(416, "PGRST103", "Requested range not satisfiable", { details });
}

const CHECKSUM_BYTES = 4;

/** Returns true for a cursor. A filter names an operator before a dot, and no cursor has one, so a column may be called cursor. */
export function isCursor(value: string): boolean {
  return !value.includes(".");
}

/** Parses a cursor; an empty one is the first page. */
export function parseCursor(text: string): CursorPage {
  if (text === "") return { kind: "first" };
  const position = readPosition(Buffer.from(text, "base64url").subarray(CHECKSUM_BYTES));
  // A position has exactly one encoding, so any other text was truncated or changed.
  return position && formatCursor(position) === text ? { kind: "after", position } : { kind: "unreadable" };
}

/** Prints a cursor, which is neither signed nor secret: it contains only values that the caller has seen or may request. */
export function formatCursor({ order, values }: CursorPosition): string {
  const content = Buffer.from(JSON.stringify([order, ...values]));
  const checksum = Buffer.alloc(CHECKSUM_BYTES);
  checksum.writeUInt32BE(crc32(content));
  return Buffer.concat([checksum, content]).toString("base64url");
}

function readPosition(content: Buffer): CursorPosition | null {
  try {
    const parts: unknown = JSON.parse(content.toString("utf8"));
    if (!Array.isArray(parts) || !parts.every(isPositionValue)) return null;
    const [order, ...values] = parts;
    return typeof order === "string" ? { order, values } : null;
  } catch {
    return null;
  }
}

/** Returns true for a valid value. Postgres interprets a zero byte as the end of a text. */
function isPositionValue(part: unknown): part is string | null {
  return part === null || (typeof part === "string" && !part.includes("\0"));
}
