/** Names that the grammar of addresses keeps for itself: a column so called cannot be filtered by, nor an argument passed by GET. */
export const RESERVED: ReadonlySet<string> = new Set([
  "select",
  "order",
  "limit",
  "offset",
  "and",
  "or",
  "not.and",
  "not.or",
  "columns",
  "on_conflict",
]);
