/** Values by names that somebody else chose, such as those of columns: `constructor` and `__proto__` are names like others. */
export function emptyNamedValues<Value>(): Record<string, Value> {
  return Object.create(null) as Record<string, Value>;
}

/** The value that was given to the name. */
export function valueNamed<Value>(values: Readonly<Record<string, Value>>, name: string): Value | undefined {
  return Object.hasOwn(values, name) ? values[name] : undefined;
}
