import { residentMebibytes } from "./resident-memory.ts";

const EVERY_MS = 50;

type Limit = { readonly mebibytes: number; exceeded(): void };

/** Watches the maximum memory of a process until the watch is stopped. */
export function watchMemory(pid: number, limit?: Limit): { most(): number; stop(): number } {
  let most = 0;
  const timer = setInterval(async () => {
    const held = (await residentMebibytes(pid)) ?? 0;
    most = Math.max(most, held);
    if (limit && held > limit.mebibytes) limit.exceeded();
  }, EVERY_MS);
  return {
    most: () => most,
    stop: () => {
      clearInterval(timer);
      return most;
    },
  };
}
