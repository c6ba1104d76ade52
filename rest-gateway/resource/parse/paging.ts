import type { ApiError } from "../../../engine/errors.ts";
import type { Collection } from "../collections.ts";
import { invalid } from "../refusals.ts";

/** Which rows of a list, and what the list looks like. */
export type Paging =
  /** An array and nothing else. */
  | { readonly kind: "plain"; readonly skip: number; readonly limit: number }
  /** `{data, pagination: {skip, limit, total}}` */
  | { readonly kind: "window"; readonly skip: number; readonly limit: number }
  /** `{data, pagination: {page, …}, links}`, counted from 1. */
  | { readonly kind: "page"; readonly page: number; readonly limit: number }
  /** `{content, page, …}`, counted from 0. */
  | { readonly kind: "slice"; readonly page: number; readonly size: number };

export const PAGING_PARAMETERS = ["skip", "limit", "page", "size", "envelope"] as const;

type Given = (name: string) => string | undefined;
type Rules = { readonly plain: Collection["plain"]; readonly maxPageSize: number };

const DEFAULTS = { plain: 10, general: 20, size: 10 };

/** What the list looks like follows from the parameters that were used. */
export function parsePaging(given: Given, { plain, maxPageSize }: Rules): Paging {
  const has = (name: string) => given(name) !== undefined;
  const enveloped = given("envelope") === "true";
  if (has("envelope") && !["true", "false"].includes(given("envelope")!)) {
    throw invalid([{ field: "envelope", message: "It must be true or false." }]);
  }
  const size = (name: string, fallback: number) => Math.min(number(given, name, fallback, 0), maxPageSize);
  if (has("size")) {
    refuseTogether(given, "size", ["limit", "skip"]);
    return reachable({ kind: "slice", page: place(given, "page", 0), size: size("size", DEFAULTS.size) });
  }
  const limit = size("limit", plain ? DEFAULTS.plain : DEFAULTS.general);
  if (has("page") || (!has("skip") && !plain && !enveloped)) {
    refuseTogether(given, "page", ["skip"]);
    return reachable({ kind: "page", page: place(given, "page", 1), limit });
  }
  const skip = place(given, "skip", 0);
  return { kind: plain && !enveloped ? "plain" : "window", skip, limit };
}

/** Where it begins, and how many rows it has at most. */
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

/** Postgres counts rows by bigint. */
const FARTHEST = 2 ** 63;

function reachable(paging: Paging): Paging {
  if (windowOf(paging).offset < FARTHEST) return paging;
  throw outOfRange("page");
}

function outOfRange(name: string): ApiError {
  return invalid([{ field: name, message: "It is out of range." }]);
}

/** Where a list begins, counted from the least. */
function place(given: Given, name: string, least: number): number {
  const value = number(given, name, least, least);
  if (Number.isSafeInteger(value)) return value;
  throw outOfRange(name);
}

function number(given: Given, name: string, fallback: number, least: number): number {
  const text = given(name);
  if (text === undefined) return fallback;
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= least) return value;
  throw invalid([{ field: name, message: `It must be a whole number from ${least} on.` }]);
}

function refuseTogether(given: Given, name: string, others: readonly string[]): void {
  const other = others.find((each) => given(each) !== undefined);
  if (other) throw invalid([{ field: other, message: `It cannot be used together with ${name}.` }]);
}
