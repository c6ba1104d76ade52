import type { Row } from "../../../engine/database/statement.ts";
import type { Position } from "../intent.ts";
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
  /** By what the last row of the page is ordered, when others follow; empty when the next one is in the same place. */
  readonly place?: Position["values"] | null;
};

export function toAnswer<Cell>(row: Row<Cell>, { total, page: isPaged }: Plan): Answer<Cell> {
  const [body, page, counted, headers, status, place, inserted] = row;
  const rows = Number(page);
  const answer = {
    body: body ?? null,
    page: rows,
    total: total.kind === "page" ? rows : toNumber(counted),
    headers: toText(headers),
    status: toText(status),
  };
  if (isPaged) return { ...answer, location: null, inserted: null, place: toList(place) };
  return { ...answer, location: toList(place), inserted: toNumber(inserted) };
}

function toList(cell: unknown): readonly (string | null)[] | null {
  return cell === undefined || cell === null ? null : JSON.parse(String(cell));
}

function toNumber(cell: unknown): number | null {
  return cell === undefined || cell === null ? null : Number(cell);
}

function toText(cell: unknown): string | null {
  return cell === undefined || cell === null ? null : String(cell);
}
