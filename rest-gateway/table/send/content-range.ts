import { ApiError } from "../../../engine/errors.ts";

/** `0-9/57`, `*\/57` for no rows, `0-9/*` when nobody counted, `0-*\/*` when more are still coming */
export function contentRange(first: number, last: number | null, total: number | null): string {
  const rows = last === null ? `${first}-*` : total !== 0 && first <= last ? `${first}-${last}` : "*";
  return `${rows}/${total ?? "*"}`;
}

type Window = { readonly offset: number; readonly limit: number | null };

/** What a page of rows says of itself; `rows` is null where they are still coming. Refuses a page that begins behind the last row. */
export function pageStatus(
  { offset, limit }: Window,
  rows: number | null,
  total: number | null,
): { status: 200 | 206; range: string } {
  if (total !== null && offset > total) {
    throw new ApiError(416, "PGRST103", "Requested range not satisfiable", {
      details: `An offset of ${offset} was requested, but there are only ${total} rows.`,
      headers: { "Content-Range": `*/${total}` },
    });
  }
  const shown = rows ?? Math.min((total ?? 0) - offset, limit ?? Number.POSITIVE_INFINITY);
  const status = total !== null && shown < total ? 206 : 200;
  return { status, range: contentRange(offset, lastOf(offset, rows), total) };
}

export function lastOf(first: number, rows: number | null): number | null {
  return rows === null ? null : first + rows - 1;
}
