import type { Statement } from "../attack.ts";
import { ATTACK_NAMES, type AttackName, isApart } from "../attacks/attacks.ts";
import { HONEST_KINDS } from "../honest.ts";
import type { HostileResult } from "./hostile.ts";

/** The maximum factor by which an honest caller waits longer beside one attack, and beside several at once. */
const MOST_TIMES = { alone: 5, together: 10 };
const MOST_MEBIBYTES = 700;
const LONGEST_HOLD_MS = 50;

/** Returns the statements that must hold during the attacks, with their results. */
export function statementsOf(result: HostileResult): Statement[] {
  const { quiet, hostile, misplaced, peak, longestHold, ending } = result;
  const isAlone = ATTACK_NAMES.filter((name) => result.attacks[name] && !isApart(name)).length <= 1;
  const mostTimes = isAlone ? MOST_TIMES.alone : MOST_TIMES.together;
  const honest = HONEST_KINDS.map((kind) => {
    const times = hostile[kind].p99 / quiet[kind].p99;
    const what = `${kind}: p99 ${spell(hostile[kind].p99)}, ${spell(times, "times")} its quiet ${spell(quiet[kind].p99)}`;
    return { what, isMet: times < mostTimes, target: `below ${mostTimes}` };
  });
  return [
    ...honest,
    { what: `memory: ${peak.toFixed(0)} MiB at most`, isMet: peak < MOST_MEBIBYTES, target: `below ${MOST_MEBIBYTES}` },
    {
      what: `event loop: held for ${longestHold.toFixed(0)} ms at most`,
      isMet: longestHold <= LONGEST_HOLD_MS,
      target: String(LONGEST_HOLD_MS),
    },
    { what: `no crash${ending === null ? "" : `: it ended by ${ending}`}`, isMet: ending === null, target: "none" },
    { what: `rows in another tenant: ${misplaced}`, isMet: misplaced === 0, target: "0" },
    ...ATTACK_NAMES.flatMap((name) => statementsOfAttack(name, result)),
  ];
}

/** Returns the faults that the attack has seen, and its measurements. */
function statementsOfAttack(name: AttackName, { attacks }: HostileResult): Statement[] {
  const { faults = [], statements = [] } = attacks[name] ?? {};
  return [
    ...faults.map((fault) => ({ what: `${name}: ${fault}`, isMet: false, target: "never" })),
    ...statements.map(({ what, ...rest }) => ({ what: `${name}: ${what}`, ...rest })),
  ];
}

function spell(value: number, unit = "ms"): string {
  return Number.isFinite(value) ? `${value.toFixed(1)} ${unit}` : "for ever";
}
