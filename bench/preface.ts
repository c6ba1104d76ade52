import { loadavg } from "node:os";
import type { ServerLauncher } from "./comparison/program.ts";
import type { BenchOptions } from "./measuring/kind.ts";

type InstallationState = Pick<ServerLauncher, "name" | "isInstalled" | "installation">;

/** Prints the conditions of the measurement. */
export function printPreface({ rounds, seconds, print }: BenchOptions, launchers: readonly InstallationState[]): void {
  print(`median of ${rounds} rounds of ${seconds} s, all in turn`);
  const [load] = loadavg();
  if (load! > 0.5) print(`the machine is busy (load ${load!.toFixed(1)}): ratios are lower than on an idle one`);
  for (const { name, isInstalled, installation = "npm ci --prefix bench/peers" } of launchers)
    if (!isInstalled) print(`${name} skipped: ${installation}`);
}
