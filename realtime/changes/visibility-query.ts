import type { Table } from "../../engine/catalog/tables.ts";
import type { Statement } from "../../engine/database/statement.ts";
import { fromImages, type Image, spellImages } from "./row-images.ts";

/**
 * Has Postgres apply policies to rows as they were when they were changed, not as they are by now: the policies' condition
 * is held against the rows themselves, under the table's own name, so that it reads as it was written.
 */
export function visibilityQuery(table: Table, using: string, images: readonly Image[]): Statement {
  return {
    text: `select coalesce((${using}), false)\n${fromImages(table, images)}`,
    values: [spellImages(images, table)],
  };
}
