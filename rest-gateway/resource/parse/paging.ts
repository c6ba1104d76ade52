import type { HttpError } from "../../../http/http-error.ts";
import type { Collection } from "../collections.ts";
import { validationError } from "../errors.ts";

/** The page of a list and the shape of its response. */
export type Paging =
  /** A bare array. */
  | { readonly kind: "plain"; readonly skip: number; readonly limit: number }
  /** `{data, pagination: {skip, limit, total}}` */
  | { readonly kind: "window"; readonly skip: number; readonly limit: number }
  /** `{data, pagination: {page, …}, links}`; pages count from 1. */
  | { readonly kind: "page"; readonly page: number; readonly limit: number }
  /** `{content, page, …}`; pages count from 0. */
  | { readonly kind: "slice"; readonly page: number; readonly size: number };

export const PAGING_PARAMETERS = ["skip", "limit", "page", "size", "envelope"] as const;

type ReadParameter = (name: string) => string | undefined;
type PagingRules = { readonly plain: Collection["plain"]; readonly maxPageSize: number };

const DEFAULT_SIZES = { plain: 10, general: 20, size: 10 };

/** The parameters that are present decide the shape of the response. */
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

/** The offset and limit in rows. */
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

/** Postgres has bigint offsets. */
const OFFSET_LIMIT = 2 ** 63;

function checkReachable(paging: Paging): Paging {
  if (windowOf(paging).offset < OFFSET_LIMIT) return paging;
  throw outOfRange("page");
}

function outOfRange(name: string): HttpError {
  return validationError([{ field: name, message: "It is out of range." }]);
}

/** A page number or an offset. */
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
