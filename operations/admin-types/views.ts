/** The filters, the order and the columns of a table that are kept by a name. */
export type SavedView = {
  readonly name: string;
  /** The filters and the order, as in a request of the table interface. */
  readonly query: string;
  /** The shown columns in order; null for all. */
  readonly columns: readonly string[] | null;
};

/** The response of `POST /views/{schema}/{table}`. */
export type SharedView = SavedView & {
  /** The id of an administrator. */
  readonly saved_by: string | null;
  readonly saved_at: string;
  readonly may_change: boolean;
};

/** The response of `GET /views/{schema}/{table}`. */
export type SharedViewList = { readonly views: readonly SharedView[] };
