import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

let collect: NodeJS.GCFunction | null = null;

/** Collects all garbage of this thread, and returns the memory to the system. The event loop pauses meanwhile. */
export function collectGarbage(): void {
  collect ??= findCollector();
  collect();
}

/** Finds V8's function, which only contexts that are made after the flag have. */
function findCollector(): NodeJS.GCFunction {
  setFlagsFromString("--expose-gc");
  return runInNewContext("gc");
}
