import type { MeasuredServer } from "../comparison/program.ts";
import { API_KEY, TOKENS } from "../comparison/tokens.ts";

/** The number of concurrent slow readers. */
export const SLOW = 5;

/** Repeats a slow request. The returned function stops this, and returns the number of responses. */
export function keepAsking({ base }: MeasuredServer, path: string): () => Promise<number> {
  let isOn = true;
  let answered = 0;
  const headers = { apikey: API_KEY, Authorization: `Bearer ${TOKENS.cached[0]}` };
  const askers = Array.from({ length: SLOW }, async () => {
    while (isOn) {
      const response = await fetch(new URL(path, base), { headers });
      const body = await response.text();
      // A refusal is not slow, so the benchmark would measure nothing beside it.
      if (!response.ok) throw new Error(`${path}: ${response.status} ${body}`);
      answered++;
    }
  });
  const all = Promise.all(askers);
  all.catch(() => {});
  return async () => {
    isOn = false;
    await all;
    return answered;
  };
}
