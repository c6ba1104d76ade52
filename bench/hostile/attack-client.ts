// The process of one attack, which its first argument names.

import { setPriority } from "node:os";
import { type Attack, LOWEST_PRIORITY, type Target } from "./attack.ts";

const { attack } = (await import(`./attacks/${process.argv[2]}.ts`)) as { readonly attack: Attack };

setPriority(LOWEST_PRIORITY);

process.on("message", async (target: Target) => {
  process.send!(await attack(target), () => process.disconnect());
});
process.send!("ready");
