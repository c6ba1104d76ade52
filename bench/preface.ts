import { loadavg } from "node:os";
import type { BenchOptions } from "./bench.ts";

type Entered = { readonly name: string; readonly isInstalled: boolean };

/** What a reader of the figures must know beforehand. */
export function tellPreface({ rounds, seconds, tell }: BenchOptions, entrants: readonly Entered[]): void {
  tell(`median of ${rounds} rounds of ${seconds} s, all by turns`);
  const [load] = loadavg();
  if (load! > 0.5) tell(`the machine is busy (load ${load!.toFixed(1)}): even ratios will be worse than they are`);
  for (const { name, isInstalled } of entrants) if (!isInstalled) tell(`${name} skipped: npm ci --prefix bench/peers`);
}
