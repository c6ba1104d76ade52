import { oneAtATime } from "./one-at-a-time.ts";
import { RecentMap } from "./recent-map.ts";

/** What is known of each of them; of whom it says nothing, nothing is known. */
export type Ask<Answer> = (keys: readonly string[]) => Promise<ReadonlyMap<string, Answer>>;

type Limits = {
  readonly rememberedMs: number;
  /** Of those who are known, and as many of others: who tries many keys cannot push out those that work. */
  readonly most: number;
};

/**
 * Asks about each at most once in a while, and about all that are asked for meanwhile in one question. An answer that is
 * remembered comes without waiting; an error is not remembered.
 */
export function askSeldom<Answer>(
  ask: Ask<Answer>,
  { rememberedMs, most }: Limits,
): (key: string) => Answer | null | Promise<Answer | null> {
  const known = new RecentMap<string, { readonly answer: Answer; readonly until: number }>(most);
  /** Until when they count as unknown. */
  const unknown = new RecentMap<string, number>(most);

  const askTogether = oneAtATime(async (keys) => {
    // From before the question: what changes while it is answered is asked about in time.
    const until = performance.now() + rememberedMs;
    const found = await ask(keys);
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
    return askTogether(key).then((answers) => answers.get(key) ?? null);
  };
}
