import type { Row } from "../../../engine/database/statement.ts";
import type { Plan } from "../plan/plan.ts";

/** What the one row of an answering statement says. */
export type Answer<Cell = string | null> = {
  /** Binary ones as hexadecimal digits; null when none was wanted. */
  readonly body: Cell | null;
  /** Rows read, written or given back. */
  readonly page: number;
  /** Rows that there are, if that was asked and is known without an estimate. */
  readonly total: number | null;
  /** What SQL has to say of the response: JSON, and digits. */
  readonly headers: string | null;
  readonly status: string | null;
  /** The key of the row inserted, in the order of the plan's `location`. */
  readonly location: readonly (string | null)[] | null;
  /** Of the rows written by a merge those that are new. */
  readonly inserted: number | null;
};

export function toAnswer<Cell>(row: Row<Cell>, { total }: Plan): Answer<Cell> {
  const [body, page, counted, headers, status, location, inserted] = row;
  const rows = Number(page);
  return {
    body: body ?? null,
    page: rows,
    total: total.kind === "page" ? rows : toNumber(counted),
    headers: toText(headers),
    status: toText(status),
    location: location === undefined || location === null ? null : JSON.parse(String(location)),
    inserted: toNumber(inserted),
  };
}

function toNumber(cell: unknown): number | null {
  return cell === undefined || cell === null ? null : Number(cell);
}

function toText(cell: unknown): string | null {
  return cell === undefined || cell === null ? null : String(cell);
}
