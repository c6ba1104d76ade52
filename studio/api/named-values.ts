/** Returns a record without a prototype, for names such as those of columns: a column may be named `constructor` or `__proto__`. */
export function emptyNamedValues<Value>(): Record<string, Value> {
  return Object.create(null) as Record<string, Value>;
}

/** Returns the value of the name, if the record has its own. */
export function valueNamed<Value>(values: Readonly<Record<string, Value>>, name: string): Value | undefined {
  return Object.hasOwn(values, name) ? values[name] : undefined;
}
