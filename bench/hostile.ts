// Runs attacks of all kinds at once, and measures their effect on honest callers.

import { verdict } from "./comparison/targets.ts";
import { ATTACK_NAMES, ATTACKS, type AttackName } from "./hostile/attacks/attacks.ts";
import { HONEST_KINDS, type HonestResult } from "./hostile/honest.ts";
import { openHostile } from "./hostile/run/hostile.ts";
import { statementsOf } from "./hostile/run/statements.ts";
import type { Bench } from "./measuring/kind.ts";

export const bench: Bench = async ({ rounds, seconds: each, only, print }) => {
  const names = only.length === 0 ? ATTACK_NAMES : (only as readonly AttackName[]);
  const seconds = 3 * rounds * each;
  print(`hostile: honest traffic for ${seconds} s alone, then for ${seconds} s beside ${names.join(", ")}`);
  await using hostile = await openHostile();
  const result = await hostile.run(names, seconds);

  print("\n  attacks");
  for (const name of names) {
    const { outcomes } = result.attacks[name]!;
    const counts = Object.entries(outcomes).toSorted(([, one], [, other]) => other - one);
    print(`    ${name.padEnd(12)} ${ATTACKS[name].what}`);
    print(`    ${"".padEnd(12)} ${counts.map(([outcome, count]) => `${count} x ${outcome}`).join(", ")}`);
  }
  print(`\n  ${"honest".padEnd(14)}${["requests", "failed", "p50", "p99"].map((cell) => cell.padStart(12)).join("")}`);
  for (const kind of HONEST_KINDS) {
    print(`    ${row(`${kind}, quiet`, result.quiet[kind])}`);
    print(`    ${row(`${kind}, hostile`, result.hostile[kind])}`);
  }
  print(
    `\n  memory ${mebibytes(result.before)} before, ${mebibytes(result.peak)} at most, ${mebibytes(result.held)} afterwards`,
  );
  print(`  event loop held for ${result.quietHold.toFixed(0)} ms at most while it was quiet`);
  print("\n  statements");
  const statements = statementsOf(result);
  for (const { what, isMet, target } of statements) print(verdict(what, isMet, target));
  return { ...result, statements, isMissed: statements.some(({ isMet }) => !isMet) };
};

function mebibytes(held: number | null): string {
  return held === null ? "unknown" : `${held.toFixed(0)} MiB`;
}

function row(name: string, { count, failures, p50, p99 }: HonestResult[keyof HonestResult]): string {
  const failed = Object.values(failures).reduce((sum, times) => sum + times, 0);
  const cells = [count, failed, `${p50.toFixed(1)} ms`, `${p99.toFixed(1)} ms`];
  const why = Object.entries(failures).map(([failure, times]) => `${times} x ${failure}`);
  return `${name.padEnd(20)}${cells.map((cell) => String(cell).padStart(12)).join("")}  ${why.join(", ")}`;
}
