import type { Catalog } from "../../engine/catalog/catalog.ts";
import type { Table } from "../../engine/catalog/tables.ts";
import type { Config } from "../../engine/config/config.ts";
import type { Prepared } from "../statement/prepare.ts";

/** What a request for rows is planned with. */
export type RequestedRowsContext = { readonly catalog: Catalog; readonly config: Config; readonly role: string };

/** A request for rows, as one of the interfaces would answer it for a role. */
export type RequestedRows = {
  readonly table: Table;
  readonly prepared: Prepared;
  /** The same rows, whole and without a page, each with its key alone; as texts, which lose no digits of a number. */
  keys(): Prepared;
};

export const NO_ROWS = "Ask for the rows of a table or a view.";
/** Names that no column is likely to have: one for each column of the key. */
export const KEY = "key_of_row_";
