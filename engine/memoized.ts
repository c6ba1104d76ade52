/** The same function, working out each answer once. */
export function memoized<Key, Value extends object>(work: (key: Key) => Value): (key: Key) => Value {
  const answers = new Map<Key, Value>();
  return (key) => {
    const known = answers.get(key);
    if (known) return known;
    const answer = work(key);
    answers.set(key, answer);
    return answer;
  };
}
