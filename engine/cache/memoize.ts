import { RecentMap } from "./recent-map.ts";

/** The same function, working out each answer once. */
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

/** The same function, working out each answer once for as long as its first argument lives. */
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

/** The same function, which does not work out again what it was asked lately; what it refuses, it refuses anew. */
export function memoizeRecent<Key, Value extends NonNullable<unknown>>(
  max: number,
  work: (key: Key) => Value,
): (key: Key) => Value {
  const results = new RecentMap<Key, Value>(max);
  return (key) => {
    const cached = results.get(key);
    if (cached !== undefined) return cached;
    const result = work(key);
    results.set(key, result);
    return result;
  };
}
