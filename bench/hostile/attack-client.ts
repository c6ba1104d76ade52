// The process of one attack; its first argument is the name.

import { writeFileSync } from "node:fs";
import { setPriority } from "node:os";
import { type Attack, LOWEST_PRIORITY, type Target } from "./attack.ts";

const { attack } = (await import(`./attacks/${process.argv[2]}.ts`)) as { readonly attack: Attack };

yieldProcessors();

// The process has its own session, so it does not end with the terminal.
process.on("disconnect", () => process.exit());

process.on("message", async (target: Target) => {
  process.send!(await attack(target), () => process.disconnect());
});
process.send!("ready");

/**
 * Linux can first divide the processors among sessions (`sched_autogroup_enabled`); a priority then counts within a
 * session only. This process has its own session.
 */
function yieldProcessors(): void {
  setPriority(LOWEST_PRIORITY);
  try {
    writeFileSync("/proc/self/autogroup", String(LOWEST_PRIORITY));
  } catch {
    // The system is not Linux, or does not group by session.
  }
}
