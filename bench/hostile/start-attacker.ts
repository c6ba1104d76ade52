import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { AttackResult, Target } from "./attack.ts";
import type { AttackName } from "./attacks/attacks.ts";

/** For how long an attack may look at what it has done, with what others leave of the processors. */
const GRACE_MS = 90_000;

export type Attacker = Disposable & {
  /** Once. It is ended when it does not end in time. */
  run(target: Target): Promise<AttackResult>;
};

/** Resolves when it is ready, in a process of its own. */
export async function startAttacker(name: AttackName): Promise<Attacker> {
  const child = fork(join(import.meta.dirname, "attack-client.ts"), [name], {
    serialization: "advanced",
    detached: true,
  });
  const ended = once(child, "exit");
  const started = await Promise.race([once(child, "message"), ended.then(() => null)]);
  if (!started) throw new Error(`The attack "${name}" cannot be started`);
  return {
    async run(target) {
      const result = once(child, "message") as Promise<[AttackResult]>;
      const tooLate = setTimeout(() => child.kill("SIGKILL"), target.until - Date.now() + GRACE_MS);
      child.send(target);
      const unfinished = ended.then(() => [{ outcomes: {}, faults: ["it has ended without a result"] }] as const);
      const [outcome] = await Promise.race([result, unfinished]);
      clearTimeout(tooLate);
      return outcome;
    },
    [Symbol.dispose]: () => void child.kill("SIGKILL"),
  };
}
