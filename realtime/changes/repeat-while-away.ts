import { setTimeout as sleep } from "node:timers/promises";
import { toApiError } from "../../engine/errors.ts";

const PAUSE_MS = 200;
/** How long a database that is away may stay away. */
const PATIENCE_MS = 30_000;

/** Asks again while the database is away. */
export async function repeatWhileAway<Result>(ask: () => Promise<Result>): Promise<Result> {
  const end = performance.now() + PATIENCE_MS;
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (toApiError(error).status !== 503 || performance.now() > end) throw error;
      await sleep(PAUSE_MS);
    }
  }
}
