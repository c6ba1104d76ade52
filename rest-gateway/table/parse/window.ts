import { ApiError } from "../../../engine/errors.ts";
import type { Placed, Window } from "../../statement/intent.ts";

/** What limit and offset say; the last of each counts. */
export type Bounds = {
  readonly path: readonly string[];
  readonly limit: number | null;
  readonly offset: number | null;
};

/** What cannot be read as a whole number is as good as absent. */
export function parseBound(text: string): number | null {
  if (!/^\s*-?\d+\s*$/.test(text)) return null;
  return Math.min(Number(text), Number.MAX_SAFE_INTEGER);
}

type Asked = { readonly method: string; readonly range: string | undefined };

/** The rows asked for, at each place where not all are. */
export function parseWindows(bounds: Iterable<Bounds>, { method, range }: Asked): readonly Placed<Window>[] {
  const windows: Placed<Window>[] = [];
  let top: Window = { offset: 0, limit: null };
  for (const { path, limit, offset } of bounds) {
    if (path.length === 0) top = readTop(limit, offset ?? 0);
    // A negative number is left to Postgres to refuse.
    else windows.push({ path, value: { limit, offset: offset ?? 0 } });
  }
  if (method === "GET" && range !== undefined) top = within(top, range);
  const isWhole = top.limit === null && top.offset === 0;
  if (method === "PUT" && !isWhole) {
    throw new ApiError(400, "PGRST114", "limit/offset querystring parameters are not allowed for PUT");
  }
  return isWhole ? windows : [{ path: [], value: top }, ...windows];
}

/** Numbers of rows, from 0; the last one belongs to it. */
type Range = { readonly first: number; readonly last: number };

function readTop(limit: number | null, offset: number): Window {
  if (limit === null) return { limit, offset: Math.max(offset, 0) };
  if (limit === 0 && offset === 0) return { limit, offset };
  return toWindow({ first: Math.max(offset, 0), last: offset + limit - 1 });
}

/** The header narrows what the parameters ask for. A header that cannot be read is ignored, as RFC 9110 has it (§14.2). */
function within(window: Window, header: string): Window {
  const match = /^(\d+)-(\d*)$/.exec(header);
  if (match === null || window.limit === 0) return window;
  const first = parseBound(match[1]!)!;
  const last = parseBound(match[2]!) ?? Number.POSITIVE_INFINITY;
  if (first > last) {
    throw unsatisfiable("The lower boundary must be lower than or equal to the upper boundary in the Range header.");
  }
  const end = window.limit === null ? Number.POSITIVE_INFINITY : window.offset + window.limit - 1;
  return toWindow({ first: Math.max(first, window.offset), last: Math.min(last, end) });
}

function toWindow({ first, last }: Range): Window {
  if (first > last) throw unsatisfiable("Limit should be greater than or equal to zero.");
  return { offset: first, limit: last === Number.POSITIVE_INFINITY ? null : last - first + 1 };
}

function unsatisfiable(details: string): ApiError {
  return new ApiError(416, "PGRST103", "Requested range not satisfiable", { details });
}
