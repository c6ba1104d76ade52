/** Names that are parameters of the table interface: a column with such a name is quoted. */
const PARAMETERS = new Set([
  "select",
  "order",
  "limit",
  "offset",
  "and",
  "or",
  "columns",
  "on_conflict",
  "cursor",
  "not",
]);

/** Quotes a column's name for `select`, `order` and the names of filters. */
export function quoteField(name: string): string {
  if (/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) && !PARAMETERS.has(name)) return name;
  return `"${name.replace(/["\\]/g, "\\$&")}"`;
}

/** Quotes a value inside `or=(…)` and `in.(…)`. */
export function quoteValue(value: string): string {
  return `"${value.replace(/["\\]/g, "\\$&")}"`;
}
