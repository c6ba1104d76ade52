import { RecentMap } from "../cache/recent-map.ts";

/** Looks up several keys; unknown keys are absent from the result. */
export type LookUpKeys<Answer> = (keys: readonly string[]) => Promise<ReadonlyMap<string, Answer>>;

type LookupCacheLimits = {
  readonly rememberedMs: number;
  /** The cache size for known keys, and the same for unknown ones: trying many unknown keys cannot evict known ones. */
  readonly max: number;
};

/**
 * Looks up each key at most once per period and batches concurrent lookups into one query. Cached answers return
 * synchronously; errors are not cached.
 */
export function cacheLookups<Answer>(
  lookUp: LookUpKeys<Answer>,
  { rememberedMs, max }: LookupCacheLimits,
): (key: string) => Answer | null | Promise<Answer | null> {
  const known = new RecentMap<string, { readonly answer: Answer; readonly until: number }>(max);
  /** The time until which a key counts as unknown. */
  const unknown = new RecentMap<string, number>(max);

  const lookUpTogether = batchLookups(async (keys) => {
    // The period begins before the query, so that changes during the query are seen in time.
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

/** Looks up one key. */
type LookUpKey<Answer> = (key: string) => Promise<Answer>;

/** Batches the keys that arrive during a query into the next one: thousands of keys are a few queries. */
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
