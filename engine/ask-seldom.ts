import { oneAtATime } from "./one-at-a-time.ts";

/** What is known of each of them; of whom it says nothing, nothing is known. */
export type Ask<Answer> = (keys: readonly string[]) => Promise<ReadonlyMap<string, Answer>>;

type Limits = { readonly rememberedMs: number; readonly most: number };
type Remembered<Answer> = { readonly answer: Answer | null; readonly until: number };

/**
 * Asks about each at most once in a while, and about all that are asked for meanwhile in one question. An answer that is
 * remembered comes without waiting; an error is not remembered.
 */
export function askSeldom<Answer>(
  ask: Ask<Answer>,
  { rememberedMs, most }: Limits,
): (key: string) => Answer | null | Promise<Answer | null> {
  const remembered = new Map<string, Remembered<Answer>>();

  const remember = (key: string, answer: Answer | null, until: number) => {
    remembered.delete(key);
    remembered.set(key, { answer, until });
    if (remembered.size > most) remembered.delete(remembered.keys().next().value!);
  };

  const askTogether = oneAtATime(async (keys) => {
    // From before the question: what changes while it is answered is asked about in time.
    const until = performance.now() + rememberedMs;
    const found = await ask(keys);
    for (const key of keys) remember(key, found.get(key) ?? null, until);
    return found;
  });

  return (key) => {
    const known = remembered.get(key);
    if (known && performance.now() < known.until) return known.answer;
    return askTogether(key).then((answers) => answers.get(key) ?? null);
  };
}
