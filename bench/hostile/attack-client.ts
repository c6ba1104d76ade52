// The process of one attack, which its first argument names.

import { writeFileSync } from "node:fs";
import { setPriority } from "node:os";
import { type Attack, LOWEST_PRIORITY, type Target } from "./attack.ts";

const { attack } = (await import(`./attacks/${process.argv[2]}.ts`)) as { readonly attack: Attack };

yieldProcessors();

// A session of its own is not ended with the terminal.
process.on("disconnect", () => process.exit());

process.on("message", async (target: Target) => {
  process.send!(await attack(target), () => process.disconnect());
});
process.send!("ready");

/**
 * Linux can share the processors among sessions first (`sched_autogroup_enabled`), and then a priority counts within a
 * session only. This process has its own one.
 */
function yieldProcessors(): void {
  setPriority(LOWEST_PRIORITY);
  try {
    writeFileSync("/proc/self/autogroup", String(LOWEST_PRIORITY));
  } catch {
    // Another system, or one that does not group.
  }
}
