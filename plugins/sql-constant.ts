/** `'DRAFT'::article_status`, `5`, `true`: the text of the value; null for what is no constant, such as now(). */
export function constantOf(expression: string): string | null {
  const quoted = /^'((?:[^'\\]|'')*)'(?:::[\w\s."[\]]+(?:\([\d,]+\))?)?$/.exec(expression);
  if (quoted) return quoted[1]!.replaceAll("''", "'");
  return /^(?:-?\d+(?:\.\d+)?|true|false)$/.test(expression) ? expression : null;
}
