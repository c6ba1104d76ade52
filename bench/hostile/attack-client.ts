// The process of one attack, which its first argument names.

import { setPriority } from "node:os";
import type { Attack, Target } from "./attack.ts";

const { attack } = (await import(`./attacks/${process.argv[2]}.ts`)) as { readonly attack: Attack };

// Attackers have machines of their own: here they get what the service and honest callers leave.
setPriority(19);

process.on("message", async (target: Target) => {
  process.send!(await attack(target), () => process.disconnect());
});
process.send!("ready");
