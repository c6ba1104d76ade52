import { setFlagsFromString } from "node:v8";

/**
 * Makes V8 keep the memory of its young generation between scavenges. Returning it to the system and faulting it in again,
 * many times per second, costs 5 % of a small request.
 */
export function keepYoungGenerationMemory(): void {
  setFlagsFromString("--lazy-new-space-shrinking");
}
