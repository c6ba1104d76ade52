/** Names that are parameters of the table interface: a column of such a name is written in quotes. */
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

/** A column's name in `select`, `order` and the names of filters. */
export function quoteField(name: string): string {
  if (/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) && !PARAMETERS.has(name)) return name;
  return `"${name.replace(/["\\]/g, "\\$&")}"`;
}

/** A value inside `or=(…)` and `in.(…)`. */
export function quoteValue(value: string): string {
  return `"${value.replace(/["\\]/g, "\\$&")}"`;
}
