// Deno's std/async/delay.ts.

import { setTimeout as sleep } from "node:timers/promises";

type DelayOptions = { readonly signal?: AbortSignal };

export function delay(milliseconds: number, { signal }: DelayOptions = {}): Promise<void> {
  return sleep(milliseconds, undefined, signal && { signal });
}
