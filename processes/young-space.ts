import { setFlagsFromString } from "node:v8";

/**
 * What requests leave behind is collected many times a second, and V8 gives most of that memory back to the system each
 * time: having each page of it anew is a twentieth of a small answer. So it keeps them until the process falls idle.
 */
export function keepYoungSpace(): void {
  setFlagsFromString("--lazy-new-space-shrinking");
}
