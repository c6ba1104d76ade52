import { createHook } from "node:async_hooks";

/** Returns the number of hashes that Node computed for the work, whoever asked for them. */
export async function argon2Runs(work: () => Promise<unknown>): Promise<number> {
  let runs = 0;
  const hook = createHook({
    init(_id, type) {
      if (type === "ARGON2REQUEST") runs++;
    },
  }).enable();
  try {
    await work();
  } finally {
    hook.disable();
  }
  return runs;
}
