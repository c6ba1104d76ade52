/** The same function, working out each answer once for as long as its first argument lives. */
export function oncePer<Key extends object, Rest extends readonly unknown[], Value>(
  work: (key: Key, ...rest: Rest) => Value,
): (key: Key, ...rest: Rest) => Value {
  const answers = new WeakMap<Key, { readonly value: Value }>();
  return (key, ...rest) => {
    const known = answers.get(key);
    if (known) return known.value;
    const value = work(key, ...rest);
    answers.set(key, { value });
    return value;
  };
}
