import { RecentMap } from "./recent-map.ts";

/** The same function, which does not work out again what it was asked lately; what it refuses, it refuses anew. */
export function remember<Key, Value extends NonNullable<unknown>>(
  most: number,
  work: (key: Key) => Value,
): (key: Key) => Value {
  const answers = new RecentMap<Key, Value>(most);
  return (key) => {
    const known = answers.get(key);
    if (known !== undefined) return known;
    const answer = work(key);
    answers.set(key, answer);
    return answer;
  };
}
