import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** Collects all garbage of this thread soon, and returns the memory to the system. The event loop pauses meanwhile. */
export function collectGarbage(): void {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as NodeJS.GCFunction;
  void collect({ type: "major", execution: "async" });
}
