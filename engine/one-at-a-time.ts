/** Asks about one of many. */
type AskAboutOne<Answer> = (key: string) => Promise<Answer>;

/** What is asked while an answer is awaited is asked together afterwards: keys by the thousand are a few questions. */
export function oneAtATime<Answer>(ask: (keys: readonly string[]) => Promise<Answer>): AskAboutOne<Answer> {
  let last: Promise<unknown> = Promise.resolve();
  let next: { readonly keys: Set<string>; readonly answer: Promise<Answer> } | null = null;

  const begin = () => {
    const keys = new Set<string>();
    const answer = last.then(() => {
      next = null;
      return ask([...keys]);
    });
    last = answer.catch(() => {});
    return { keys, answer };
  };

  return (key) => {
    next ??= begin();
    next.keys.add(key);
    return next.answer;
  };
}
