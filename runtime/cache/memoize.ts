/** Returns the same function with a cache of all results. */
export function memoize<Key, Value extends object>(work: (key: Key) => Value): (key: Key) => Value {
  const results = new Map<Key, Value>();
  return (key) => {
    const cached = results.get(key);
    if (cached) return cached;
    const result = work(key);
    results.set(key, result);
    return result;
  };
}

/** Returns the same function with a cache of one result per object, which is released with the object. */
export function memoizePerObject<Key extends object, Rest extends readonly unknown[], Value>(
  work: (key: Key, ...rest: Rest) => Value,
): (key: Key, ...rest: Rest) => Value {
  const results = new WeakMap<Key, { readonly value: Value }>();
  return (key, ...rest) => {
    const cached = results.get(key);
    if (cached) return cached.value;
    const value = work(key, ...rest);
    results.set(key, { value });
    return value;
  };
}
