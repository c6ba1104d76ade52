import type { MeasuredServer } from "../comparison/program.ts";
import { API_KEY, TOKENS } from "../comparison/tokens.ts";

/** How many read slowly at a time. */
export const SLOW = 5;

/** Asks for something slow again and again, until what it returns is called: then it says how many were answered. */
export function keepAsking({ base }: MeasuredServer, path: string): () => Promise<number> {
  let isOn = true;
  let answered = 0;
  const headers = { apikey: API_KEY, Authorization: `Bearer ${TOKENS.cached[0]}` };
  const askers = Array.from({ length: SLOW }, async () => {
    while (isOn) {
      const response = await fetch(new URL(path, base), { headers });
      const body = await response.text();
      // A refusal is not slow, so nothing would be measured beside it.
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
