import type { ApiError, FieldFault } from "../../../engine/errors.ts";
import type { Condition, OrderTerm, SelectItem } from "../../statement/intent.ts";
import type { Collection, Collections } from "../collections.ts";
import type { Field } from "../fields.ts";
import { invalid } from "../refusals.ts";
import { filterNames, parseFilter } from "./filters.ts";
import { nearMiss } from "./near-miss.ts";
import { PAGING_PARAMETERS, type Paging, parsePaging } from "./paging.ts";
import { everyField, parseFields } from "./selected-fields.ts";
import { parseSort } from "./sort.ts";

/** Parameters that are about the request and not about rows. */
const OF_REQUESTS = ["version", "api_key"] as const;
const OF_ROWS = ["fields", "links"] as const;
const OF_LISTS = [...PAGING_PARAMETERS, "sort", "order"] as const;

/** They mean the same to all lists, also where a field is called like one of them. */
export const RESERVED: readonly string[] = [...OF_LISTS, ...OF_ROWS, ...OF_REQUESTS];

type RowParameters = { readonly select: readonly SelectItem[]; readonly links: boolean };
export type ListParameters = RowParameters & {
  readonly conditions: readonly Condition[];
  readonly order: readonly OrderTerm[];
  readonly paging: Paging;
};

/** Whether a parameter of the field's name gives the rows whose field is that value. */
export function isFilteredByEquality({ name, column, filterable }: Field, { searches }: Collection): boolean {
  const meansAnother = isOneOf(RESERVED, name) || searches.some(({ parameter }) => parameter === name);
  return filterable && !meansAnother && column.baseType.kind !== "array";
}

type About = { readonly collection: Collection; readonly collections: Collections };

/** Of an answer that is a row; of a new one, and of what an action gives, fields cannot be chosen. */
export function parseRowParameters(
  parameters: URLSearchParams,
  about: About,
  { choosing = true }: { readonly choosing?: boolean } = {},
): RowParameters {
  // As most are asked for.
  if (parameters.size === 0) return { select: everyField(about.collection), links: false };
  const known = [...OF_ROWS.filter((name) => choosing || name !== "fields"), ...OF_REQUESTS];
  const unknown = [...parameters.keys()].filter((name) => !isOneOf(known, name));
  if (unknown.length > 0) throw unknownParameters(unknown, known);
  return toRow(parameters, about);
}

/** Of a list. Names that mean something to all lists do so before any field that is called the same. */
export function parseListParameters(
  parameters: URLSearchParams,
  about: About,
  { maxPageSize }: { readonly maxPageSize: number },
): ListParameters {
  const { collection } = about;
  const faults: FieldFault[] = [];
  const unknown: string[] = [];
  const conditions: Condition[] = [];
  for (const name of new Set(parameters.keys())) {
    if (isOneOf(RESERVED, name)) continue;
    const values = parameters.getAll(name);
    const condition = parseFilter(name, values, collection, (fault) => faults.push(fault));
    if (condition) conditions.push(condition);
    else unknown.push(name);
  }
  if (unknown.length > 0) throw unknownParameters(unknown, [...RESERVED, ...filterNames(collection)]);
  if (faults.length > 0) throw invalid(faults);
  const given = (name: string) => single(parameters, name);
  return {
    ...toRow(parameters, about),
    conditions,
    order: parseSort(given("sort"), given("order"), collection),
    paging: parsePaging(given, { plain: collection.plain, maxPageSize }),
  };
}

function toRow(parameters: URLSearchParams, { collection, collections }: About): RowParameters {
  const fields = single(parameters, "fields");
  const links = single(parameters, "links") ?? "false";
  if (links !== "true" && links !== "false") {
    throw invalid([{ field: "links", message: "It must be true or false." }]);
  }
  const select = fields === undefined ? everyField(collection) : parseFields(fields, collection, collections);
  return { select, links: links === "true" };
}

function single(parameters: URLSearchParams, name: string): string | undefined {
  const [value, ...others] = parameters.getAll(name);
  if (others.length > 0) throw invalid([{ field: name, message: "Give it once." }]);
  return value;
}

function unknownParameters(names: readonly string[], known: readonly string[]): ApiError {
  const toFault = (field: string): FieldFault => ({
    field,
    message: `There is no such parameter here.${nearMiss(field, known)}`,
  });
  return invalid(names.map(toFault));
}

function isOneOf(names: readonly string[], name: string): boolean {
  return names.includes(name);
}
