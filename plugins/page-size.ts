import { ApiError } from "../engine/errors.ts";

export const DEFAULT_PAGE_SIZE = 10;

type Count = number | null | undefined;

/** `limit`: never more than the deployment allows, however much was asked. */
export function readLimit(limit: Count, max: number): number {
  return Math.min(notNegative("limit", limit ?? DEFAULT_PAGE_SIZE), max);
}

export function readOffset(offset: Count): number {
  return notNegative("offset", offset ?? 0);
}

/** A page is counted from the one end or from the other; without either it is the first page. */
export function readPage(
  first: Count,
  last: Count,
  max: number,
): { readonly first: number | null; readonly last: number | null } {
  if (first != null && last != null)
    throw new ApiError(400, "VALIDATION_ERROR", "Ask for first or last, not for both.");
  if (last != null) return { first: null, last: Math.min(notNegative("last", last), max) };
  return { first: Math.min(notNegative("first", first ?? DEFAULT_PAGE_SIZE), max), last: null };
}

function notNegative(name: string, count: number): number {
  if (count < 0) throw new ApiError(400, "VALIDATION_ERROR", `${name} must not be negative.`);
  return count;
}
