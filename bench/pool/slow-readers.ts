import { setTimeout as sleep } from "node:timers/promises";
import type { MeasuredServer } from "../comparison/program.ts";
import { TOKENS } from "../comparison/tokens.ts";

/** How many read slowly at a time. */
export const SLOW = 5;

/** Asks for something slow again and again, until what it returns is called. */
export function keepAsking({ base }: MeasuredServer, path: string): () => Promise<void> {
  let isOn = true;
  const headers = { Authorization: `Bearer ${TOKENS.cached[0]}` };
  const askers = Array.from({ length: SLOW }, async () => {
    while (isOn)
      await fetch(new URL(path, base), { headers }).then(
        (response) => response.text(),
        () => sleep(100),
      );
  });
  return async () => {
    isOn = false;
    await Promise.all(askers);
  };
}
