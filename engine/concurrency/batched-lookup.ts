import { RecentMap } from "../cache/recent-map.ts";

/** What is known of each of them; of whom it says nothing, nothing is known. */
export type LookUpKeys<Answer> = (keys: readonly string[]) => Promise<ReadonlyMap<string, Answer>>;

type LookupCacheLimits = {
  readonly rememberedMs: number;
  /** Of those who are known, and as many of others: who tries many keys cannot push out those that work. */
  readonly most: number;
};

/**
 * Asks about each at most once in a while, and about all that are asked for meanwhile in one question. An answer that is
 * remembered comes without waiting; an error is not remembered.
 */
export function cacheLookups<Answer>(
  lookUp: LookUpKeys<Answer>,
  { rememberedMs, most }: LookupCacheLimits,
): (key: string) => Answer | null | Promise<Answer | null> {
  const known = new RecentMap<string, { readonly answer: Answer; readonly until: number }>(most);
  /** Until when they count as unknown. */
  const unknown = new RecentMap<string, number>(most);

  const lookUpTogether = batchLookups(async (keys) => {
    // From before the question: what changes while it is answered is asked about in time.
    const until = performance.now() + rememberedMs;
    const found = await lookUp(keys);
    for (const key of keys) {
      const answer = found.get(key);
      if (answer === undefined) unknown.set(key, until);
      else known.set(key, { answer, until });
    }
    return found;
  });

  return (key) => {
    const now = performance.now();
    const remembered = known.get(key);
    if (remembered && now < remembered.until) return remembered.answer;
    if (now < (unknown.get(key) ?? 0)) return null;
    return lookUpTogether(key).then((answers) => answers.get(key) ?? null);
  };
}

/** Asks about one of many. */
type LookUpKey<Answer> = (key: string) => Promise<Answer>;

/** What is asked while an answer is awaited is asked together afterwards: keys by the thousand are a few questions. */
export function batchLookups<Answer>(lookUp: (keys: readonly string[]) => Promise<Answer>): LookUpKey<Answer> {
  let last: Promise<unknown> = Promise.resolve();
  let next: { readonly keys: Set<string>; readonly answer: Promise<Answer> } | null = null;

  const begin = () => {
    const keys = new Set<string>();
    const answer = last.then(() => {
      next = null;
      return lookUp([...keys]);
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
