import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Scratch } from "../../measuring/scratch.ts";
import type { AttackResult, Target, Victim } from "../attack.ts";
import { type AttackName, isApart, victimsOf } from "../attacks/attacks.ts";
import { HONEST_KINDS, type HonestResult, startHonestCallers } from "../honest.ts";
import { countMisplaced, startAttacked } from "../schema.ts";
import { startVictim, startWatched } from "../service.ts";

/** The duration of the warm-up: programs with a just-in-time compiler become faster while they run. */
const WARM_UP_SECONDS = 3;
const SETTLE_SECONDS = 2;
const LONGEST_APART_MS = 60_000;

type Ready = { readonly name: AttackName; readonly attacker: Attacker; readonly victims: readonly Victim[] };

export type HostileResult = {
  readonly quiet: HonestResult;
  readonly hostile: HonestResult;
  readonly attacks: Readonly<Partial<Record<AttackName, AttackResult>>>;
  /** The number of rows that belong to another tenant than their writer. */
  readonly misplaced: number;
  /** The memory in mebibytes: before the attacks, the maximum, and after them. */
  readonly before: number | null;
  readonly peak: number;
  readonly held: number | null;
  /** The longest time in milliseconds for which the event loop was held. */
  readonly quietHold: number;
  readonly longestHold: number;
  /** The end of the service; null while it runs. */
  readonly ending: string | null;
};

type Hostile = AsyncDisposable & {
  readonly scratch: Scratch;
  run(names: readonly AttackName[], seconds: number): Promise<HostileResult>;
};

/** Returns the run with the lower p99 for each kind: other load of the machine only ever adds to it. */
function quieterOf(one: HonestResult, other: HonestResult): HonestResult {
  const kinds = HONEST_KINDS.map((kind) => [kind, one[kind].p99 <= other[kind].p99 ? one[kind] : other[kind]]);
  return Object.fromEntries(kinds);
}

/** Opens a database, a service and honest callers, for attacks that run at the same time. */
export async function openHostile(): Promise<Hostile> {
  await using opened = new AsyncDisposableStack();
  const scratch = opened.use(await startAttacked());
  const service = opened.use(await startWatched(scratch));
  const callers = opened.use(startHonestCallers());
  const everything = opened.move();
  return {
    scratch,
    async run(names, seconds) {
      await using started = new AsyncDisposableStack();
      const attackers: Ready[] = [];
      for (const name of names) {
        const victims: Victim[] = [];
        for (const options of victimsOf(name)) {
          const { url, pid } = started.use(await startVictim(scratch, options));
          victims.push({ url, pid });
        }
        attackers.push({ name, attacker: started.use(await startAttacker(name)), victims });
      }
      await callers.run(service.url, Math.min(WARM_UP_SECONDS, seconds));
      const quietSince = Date.now();
      const quiet = await callers.run(service.url, seconds);
      const quietHold = await service.longestHold(quietSince);

      const before = await service.resident();
      const since = Date.now();
      const until = since + seconds * 1_000;
      const attack = async ({ name, attacker, victims }: Ready, until: number) =>
        [name, await attacker.run({ url: service.url, ownerUrl: scratch.url("postgres"), victims, until })] as const;
      const together = attackers.filter(({ name }) => !isApart(name));
      const attacking = together.map((ready) => attack(ready, until));
      const [hostile, ...results] = await Promise.all([callers.run(service.url, seconds), ...attacking]);
      const longestHold = await service.longestHold(since);
      for (const ready of attackers.filter(({ name }) => isApart(name))) {
        results.push(await attack(ready, Date.now() + LONGEST_APART_MS));
      }
      await sleep(SETTLE_SECONDS * 1_000);
      const quietAfterwards = await callers.run(service.url, seconds);
      return {
        quiet: quieterOf(quiet, quietAfterwards),
        hostile,
        attacks: Object.fromEntries(results),
        misplaced: await countMisplaced(scratch),
        before,
        peak: service.peak(),
        held: await service.resident(),
        quietHold,
        longestHold,
        ending: service.ending(),
      };
    },
    [Symbol.asyncDispose]: () => everything.disposeAsync(),
  };
}

/** The time after the end in which an attack may check its results, with the processor time that others leave. */
const GRACE_MS = 90_000;

export type Attacker = Disposable & {
  /** Runs the attack once, and ends it if it does not end in time. */
  run(target: Target): Promise<AttackResult>;
};

/** Starts an attacker in a separate process; resolves when it is ready. */
async function startAttacker(name: AttackName): Promise<Attacker> {
  const child = fork(join(import.meta.dirname, "../attack-client.ts"), [name], {
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
