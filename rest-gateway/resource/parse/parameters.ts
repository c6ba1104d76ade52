import { type HttpError, queryWithoutApiKey } from "#http";
import type { FieldReference, OrderTerm, RowCondition, SelectItem } from "#planner/intent";
import { type FieldError, memoizePerObject, RecentMap } from "#runtime";
import type { Collection } from "../collections/collections.ts";
import { suggestName, validationError } from "../collections/errors.ts";
import type { CollectionField } from "../collections/fields.ts";

import { type FieldsContext, parseFields, selectEveryField } from "./fields.ts";
import type { ResourceRequest } from "./request.ts";
import { isSearchable, parseSearch, SEARCH, type SearchResults } from "./search.ts";
import { characterFault, isOutOfRange, TEXT_TYPES, textFault } from "./values.ts";

/** The size of the cache in characters, with a fixed overhead for each entry. */
const MAX_CACHED_CHARACTERS = 32_000;
const ENTRY_OVERHEAD = 500;

/** Parsed parameters by query string, since most queries are repeated. */
const listCacheOf = memoizePerObject((_collection: Collection) => {
  return new RecentMap<string, ListParameters>(MAX_CACHED_CHARACTERS, ({ length }) => length + ENTRY_OVERHEAD);
});

/** Parameters that choose the page of a list and the form of its response. */
const PAGING_PARAMETERS = ["skip", "limit", "page", "size", "envelope"] as const;
const REQUEST_PARAMETERS = ["version", "api_key"] as const;
const ROW_PARAMETERS = ["fields", "links"] as const;
const LIST_PARAMETERS = [...PAGING_PARAMETERS, "sort", "order"] as const;

/** Parameters that take precedence over fields of the same name. */
export const RESERVED_PARAMETERS: readonly string[] = [...LIST_PARAMETERS, ...ROW_PARAMETERS, ...REQUEST_PARAMETERS];

type RowParameters = { readonly select: readonly SelectItem[]; readonly links: boolean };
type ListParameters = RowParameters & {
  readonly conditions: readonly RowCondition[];
  readonly order: readonly OrderTerm[];
  readonly paging: Paging;
};

/** Returns true if a parameter with the field's name filters by equality. */
export function isFilteredByEquality({ name, column, filterable }: CollectionField, { searches }: Collection): boolean {
  const meansAnother = isOneOf(RESERVED_PARAMETERS, name) || searches.some(({ parameter }) => parameter === name);
  return filterable && !meansAnother && column.baseType.kind !== "array";
}

/** Parses a query string. URLSearchParams would read bytes that are no UTF-8 as U+FFFD. */
export function readParameters(rawQuery: string): URLSearchParams {
  const parameters = new URLSearchParams(rawQuery);
  const isReplaced = (text: string) => text.includes("\ufffd");
  const replaced = [...parameters].find(([name, value]) => isReplaced(name) || isReplaced(value));
  if (!replaced || isUtf8Query(rawQuery)) return parameters;
  throw validationError([{ field: replaced[0], message: "It is not valid UTF-8." }]);
}

function isUtf8Query(rawQuery: string): boolean {
  try {
    // A percent sign without two hexadecimal digits is literal.
    decodeURIComponent(rawQuery.replaceAll(/%(?![\dA-Fa-f]{2})/g, "%25"));
    return true;
  } catch {
    return false;
  }
}

type ParameterContext = Pick<FieldsContext, "collection" | "collections">;

/** Parameters of a single row. Responses to POST and to actions have all fields. */
export function parseRowParameters(
  parameters: URLSearchParams,
  context: ParameterContext,
  { choosing = true }: { readonly choosing?: boolean } = {},
): RowParameters {
  // The most frequent case.
  if (parameters.size === 0) return { select: selectEveryField(context.collection), links: false };
  const accepted = [...ROW_PARAMETERS.filter((name) => choosing || name !== "fields"), ...REQUEST_PARAMETERS];
  const unknown = [...parameters.keys()].filter((name) => !isOneOf(accepted, name));
  if (unknown.length > 0) throw unknownParameters(unknown, accepted);
  return toRowParameters(parameters, context);
}

/** Parameters of a list. Reserved names take precedence over fields. */
export function parseListParameters(
  parameters: URLSearchParams,
  context: ParameterContext,
  { maxPageSize }: { readonly maxPageSize: number },
): ListParameters {
  const { collection } = context;
  const read = (name: string) => singleValue(parameters, name);
  const searchText = isSearchable(collection) ? read(SEARCH) : undefined;
  const search = searchText === undefined ? null : parseSearch(searchText, collection, context.collections);
  const faults: FieldError[] = [];
  const unknown: string[] = [];
  const conditions: RowCondition[] = [];
  for (const name of new Set(parameters.keys())) {
    if (isOneOf(RESERVED_PARAMETERS, name) || (search && name === SEARCH)) continue;
    const values = parameters.getAll(name);
    const condition = parseFilter(name, values, collection, (fault) => faults.push(fault));
    if (condition) conditions.push(condition);
    else unknown.push(name);
  }
  if (unknown.length > 0) throw unknownParameters(unknown, [...RESERVED_PARAMETERS, ...filterNames(collection)]);
  if (faults.length > 0) throw validationError(faults);
  if (search) conditions.push(search.condition);
  return {
    ...toRowParameters(parameters, { ...context, results: search?.results }),
    conditions,
    order: parseSort(read("sort"), read("order"), { collection, results: search?.results }),
    paging: parsePaging(read, { plain: collection.plain, maxPageSize }),
  };
}

function toRowParameters(parameters: URLSearchParams, context: FieldsContext): RowParameters {
  const fields = singleValue(parameters, "fields");
  const links = singleValue(parameters, "links") ?? "false";
  if (links !== "true" && links !== "false") {
    throw validationError([{ field: "links", message: "It must be true or false." }]);
  }
  const select = fields === undefined ? selectEveryField(context.collection) : parseFields(fields, context);
  return { select, links: links === "true" };
}

function singleValue(parameters: URLSearchParams, name: string): string | undefined {
  const [value, ...others] = parameters.getAll(name);
  if (others.length > 0) throw validationError([{ field: name, message: "It must be given only once." }]);
  return value;
}

function unknownParameters(names: readonly string[], accepted: readonly string[]): HttpError {
  const toFault = (field: string): FieldError => ({
    field,
    message: `Unknown parameter.${suggestName(field, accepted)}`,
  });
  return validationError(names.map(toFault));
}

function isOneOf(names: readonly string[], name: string): boolean {
  return names.includes(name);
}

type SortDirection = "asc" | "desc";

/**
 * Parses `sort=status:desc,title`, or `sort=title&order=desc`, and appends the key, so that pages neither repeat nor
 * skip rows.
 */
function parseSort(
  sort: string | undefined,
  order: string | undefined,
  { collection, results }: Pick<FieldsContext, "collection" | "results">,
): OrderTerm[] {
  const fallback = order === undefined ? "asc" : toDirection("order", order);
  const sortable = [...sortableFields(collection, results)];
  const terms = sort === undefined ? [] : sort.split(",").map((term) => parseTerm(term, fallback, sortable));
  const named = new Set(terms.map(({ field }) => (field.measure ? null : field.name)));
  const direction = terms.at(-1)?.direction ?? fallback;
  const rest = collection.key.filter(({ column }) => !named.has(column.name));
  return [...terms, ...rest.map(({ column }) => toOrderTerm(columnField(column.name), direction))];
}

type SortableField = readonly [name: string, field: FieldReference];

function* sortableFields({ fields }: Collection, results: SearchResults = new Map()): Generator<SortableField> {
  for (const { name, column, sortable } of fields) if (sortable) yield [name, columnField(column.name)];
  for (const result of results) if (result[1].measure.name === "rank") yield result;
}

function parseTerm(term: string, fallback: SortDirection, sortable: readonly SortableField[]): OrderTerm {
  const names = sortable.map(([name]) => name);
  // A field name may contain colons.
  const colon = names.includes(term) ? -1 : term.lastIndexOf(":");
  const name = colon < 0 ? term : term.slice(0, colon);
  const direction = colon < 0 ? undefined : term.slice(colon + 1);
  const found = sortable.find(([each]) => each === name);
  if (!found) {
    throw validationError([
      { field: "sort", message: `Unknown sort field ${quoted(term)}.${suggestName(name, names)}` },
    ]);
  }
  return toOrderTerm(found[1], direction === undefined ? fallback : toDirection("sort", direction));
}

function toDirection(parameter: string, text: string): SortDirection {
  const direction = text.toLowerCase();
  if (direction === "asc" || direction === "desc") return direction;
  throw validationError([{ field: parameter, message: `The direction must be asc or desc, not ${quoted(text)}.` }]);
}

function columnField(name: string): FieldReference {
  return { name, path: [] };
}

function toOrderTerm(field: FieldReference, direction: SortDirection): OrderTerm {
  return { field, relation: null, direction, nulls: null };
}

function quoted(text: string): string {
  return JSON.stringify(text);
}

/** Returns the parsed parameters of a list: the same object for the same query string, as long as the catalog is the same. */
export function cachedListParameters({
  request,
  target: { collection },
  collections,
  parameters,
  settings,
}: ResourceRequest) {
  const cache = listCacheOf(collection);
  const query = `${settings.maxPageSize}?${queryWithoutApiKey(request.rawQuery)}`;
  const cached = cache.get(query);
  if (cached) return cached;
  const parsed = parseListParameters(parameters, { collection, collections }, settings);
  cache.set(query, parsed);
  return parsed;
}

/** The page of a list and the shape of its response. */
export type Paging =
  /** A response that is a bare array. */
  | { readonly kind: "plain"; readonly skip: number; readonly limit: number }
  /** A response `{data, pagination: {skip, limit, total}}`. */
  | { readonly kind: "window"; readonly skip: number; readonly limit: number }
  /** A response `{data, pagination: {page, …}, links}`; pages count from 1. */
  | { readonly kind: "page"; readonly page: number; readonly limit: number }
  /** A response `{content, page, …}`; pages count from 0. */
  | { readonly kind: "slice"; readonly page: number; readonly size: number };

type ReadParameter = (name: string) => string | undefined;
type PagingRules = { readonly plain: Collection["plain"]; readonly maxPageSize: number };

const DEFAULT_SIZES = { plain: 10, general: 20, size: 10 };

/** Parses paging: the parameters that are present decide the form of the response. */
export function parsePaging(read: ReadParameter, { plain, maxPageSize }: PagingRules): Paging {
  const has = (name: string) => read(name) !== undefined;
  const enveloped = read("envelope") === "true";
  if (has("envelope") && !["true", "false"].includes(read("envelope")!)) {
    throw validationError([{ field: "envelope", message: "It must be true or false." }]);
  }
  const size = (name: string, fallback: number) => Math.min(parseCount(read, name, fallback, 0), maxPageSize);
  if (has("size")) {
    refuseCombination(read, "size", ["limit", "skip"]);
    return checkReachable({
      kind: "slice",
      page: parsePosition(read, "page", 0),
      size: size("size", DEFAULT_SIZES.size),
    });
  }
  const limit = size("limit", plain ? DEFAULT_SIZES.plain : DEFAULT_SIZES.general);
  if (has("page") || (!has("skip") && !plain && !enveloped)) {
    refuseCombination(read, "page", ["skip"]);
    return checkReachable({ kind: "page", page: parsePosition(read, "page", 1), limit });
  }
  const skip = parsePosition(read, "skip", 0);
  return { kind: plain && !enveloped ? "plain" : "window", skip, limit };
}

/** Returns the offset and limit in rows. */
export function windowOf(paging: Paging): { readonly offset: number; readonly limit: number } {
  switch (paging.kind) {
    case "page":
      return { offset: (paging.page - 1) * paging.limit, limit: paging.limit };
    case "slice":
      return { offset: paging.page * paging.size, limit: paging.size };
    default:
      return { offset: paging.skip, limit: paging.limit };
  }
}

/** The limit of offsets, which are bigint in Postgres. */
const OFFSET_LIMIT = 2 ** 63;

function checkReachable(paging: Paging): Paging {
  if (windowOf(paging).offset < OFFSET_LIMIT) return paging;
  throw outOfRange("page");
}

function outOfRange(name: string): HttpError {
  return validationError([{ field: name, message: "It is out of range." }]);
}

/** Parses a page number or an offset. */
function parsePosition(read: ReadParameter, name: string, least: number): number {
  const value = parseCount(read, name, least, least);
  if (Number.isSafeInteger(value)) return value;
  throw outOfRange(name);
}

function parseCount(read: ReadParameter, name: string, fallback: number, least: number): number {
  const text = read(name);
  if (text === undefined) return fallback;
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= least) return value;
  throw validationError([{ field: name, message: `It must be a whole number of at least ${least}.` }]);
}

function refuseCombination(read: ReadParameter, name: string, others: readonly string[]): void {
  const other = others.find((each) => read(each) !== undefined);
  if (other) throw validationError([{ field: other, message: `It cannot be used together with ${name}.` }]);
}

/** Parses a filter parameter; null if the name is not a filter. Invalid values are reported to `refuse`. */
function parseFilter(
  name: string,
  values: readonly string[],
  collection: Collection,
  refuse: (fault: FieldError) => void,
): RowCondition | null {
  const searchText = (): string => {
    const text = values.join(" ");
    const fault = characterFault(text);
    if (fault) refuse({ field: name, message: `It ${fault}.` });
    return text;
  };
  const search = collection.searches.find(({ parameter }) => parameter === name);
  if (search) {
    const { schema, name: routine } = search.routine;
    return {
      kind: "row",
      negated: false,
      operation: { kind: "found", by: { schema, name: routine }, value: searchText() },
    };
  }
  const field = filterFieldOf(name, collection);
  if (!field) return name === KEYWORD ? keywordCondition(searchText(), collection) : null;
  if (field.isReadByFunction.text) {
    searchText();
    return toCondition(field, values);
  }
  const type = field.column.baseType.kind === "array" ? field.column.baseType.element : field.column.type;
  for (const value of values) {
    const fault = textFault(type, value);
    if (fault) refuse({ field: name, message: `It ${fault}.` });
  }
  // No row has a number outside the range of its type.
  const possible = values.filter((value) => !isOutOfRange(type, value));
  if (possible.length === 0) return matchNothing(field);
  return toCondition(field, possible);
}

const KEYWORD = "keyword";

export function filterNames(collection: Collection): string[] {
  const fields = collection.fields.filter(({ filterable }) => filterable).map(({ name }) => name);
  const references = collection.references.filter(({ fields }) => fields.length === 1).map(({ name }) => name);
  const searches = collection.searches.map(({ parameter }) => parameter);
  const anyText = textFields(collection).length > 0 ? [KEYWORD] : [];
  const search = isSearchable(collection) ? [SEARCH] : [];
  return [...new Set([...fields, ...references, ...searches, ...anyText, ...search])];
}

export function filterFieldOf(name: string, collection: Collection): CollectionField | undefined {
  const field = fieldNamed(name, collection);
  return field?.filterable ? field : undefined;
}

/** Finds a field by its name, or by the name of the reference that it is the foreign key of. */
export function fieldNamed(name: string, { fields, references }: Collection): CollectionField | undefined {
  const own = fields.find((each) => each.name === name);
  if (own) return own;
  const reference = references.find((each) => each.name === name);
  return reference?.fields.length === 1 ? reference.fields[0] : undefined;
}

/** Makes a condition. Several values match any of them; array columns match if they contain the value. */
function toCondition({ column }: CollectionField, values: readonly string[]): RowCondition {
  const field = { name: column.name, path: [] };
  if (column.baseType.kind === "array") {
    const contains = values.map((value): RowCondition => {
      const item = `{"${value.replace(/[\\"]/g, "\\$&")}"}`;
      const operation = { kind: "compare", operator: "cs", quantifier: null, value: item } as const;
      return { kind: "filter", field, negated: false, operation };
    });
    return { kind: "or", negated: false, conditions: contains };
  }
  const [only, ...others] = values;
  if (others.length === 0) return equalsCondition(column.name, only!);
  // The items of an array of boxes are separated by semicolons.
  if (column.baseType.name === "box") {
    return { kind: "or", negated: false, conditions: values.map((value) => equalsCondition(column.name, value)) };
  }
  return { kind: "filter", field, negated: false, operation: { kind: "in", values } };
}

export function equalsCondition(name: string, value: string): RowCondition {
  const operation = { kind: "compare", operator: "eq", quantifier: null, value } as const;
  return { kind: "filter", field: { name, path: [] }, negated: false, operation };
}

/** Makes a condition that no row meets. */
function matchNothing({ column }: CollectionField): RowCondition {
  const isNull = (value: "null" | "not_null"): RowCondition => {
    return { kind: "filter", field: { name: column.name, path: [] }, negated: false, operation: { kind: "is", value } };
  };
  return { kind: "and", negated: false, conditions: [isNull("null"), isNull("not_null")] };
}

/** Makes a condition on all text fields, if no search function has this name; null without text fields. */
function keywordCondition(keyword: string, collection: Collection): RowCondition | null {
  const [first, ...others] = textFields(collection);
  if (!first) return null;
  if (keyword.trim() === "") return matchNothing(first);
  const pattern = `%${keyword.replace(/[\\%_]/g, "\\$&")}%`;
  const conditions = [first, ...others].map(({ column }): RowCondition => {
    const operation = { kind: "compare", operator: "ilike", quantifier: null, value: pattern } as const;
    return { kind: "filter", field: { name: column.name, path: [] }, negated: false, operation };
  });
  return { kind: "or", negated: false, conditions };
}

function textFields({ fields }: Collection): CollectionField[] {
  return fields.filter(({ filterable, column }) => filterable && TEXT_TYPES.has(column.baseType.name));
}
