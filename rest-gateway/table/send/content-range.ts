import { ApiError } from "../../../engine/errors.ts";

/** `0-9/57`, `*\/57` for no rows, `0-9/*` when nobody counted */
export function contentRange(first: number, last: number, total: number | null): string {
  const rows = total !== 0 && first <= last ? `${first}-${last}` : "*";
  return `${rows}/${total ?? "*"}`;
}

/** What a page of rows says of itself. Refuses a page that begins behind the last row. */
export function pageStatus(offset: number, rows: number, total: number | null): { status: 200 | 206; range: string } {
  if (total !== null && offset > total) {
    throw new ApiError(416, "PGRST103", "Requested range not satisfiable", {
      details: `An offset of ${offset} was requested, but there are only ${total} rows.`,
      headers: { "Content-Range": `*/${total}` },
    });
  }
  const status = total !== null && rows < total ? 206 : 200;
  return { status, range: contentRange(offset, offset + rows - 1, total) };
}
