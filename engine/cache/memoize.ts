import { RecentMap } from "./recent-map.ts";

/** The same function, working out each answer once. */
export function memoize<Key, Value extends object>(work: (key: Key) => Value): (key: Key) => Value {
  const answers = new Map<Key, Value>();
  return (key) => {
    const known = answers.get(key);
    if (known) return known;
    const answer = work(key);
    answers.set(key, answer);
    return answer;
  };
}

/** The same function, working out each answer once for as long as its first argument lives. */
export function memoizePerObject<Key extends object, Rest extends readonly unknown[], Value>(
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

/** The same function, which does not work out again what it was asked lately; what it refuses, it refuses anew. */
export function memoizeRecent<Key, Value extends NonNullable<unknown>>(
  max: number,
  work: (key: Key) => Value,
): (key: Key) => Value {
  const answers = new RecentMap<Key, Value>(max);
  return (key) => {
    const known = answers.get(key);
    if (known !== undefined) return known;
    const answer = work(key);
    answers.set(key, answer);
    return answer;
  };
}
