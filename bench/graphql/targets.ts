import type { Outcome } from "../comparison/report.ts";
import { verdict } from "../comparison/targets.ts";
import { APOLLO, BARE } from "./servers.ts";

const TARGETS: Readonly<Record<string, number>> = { [BARE]: 2, [APOLLO]: 1.5 };

/** Each target with what was reached, and whether that is enough. Nothing is said of who was not there. */
export function judge(outcomes: readonly Outcome[]): string[] {
  return outcomes.flatMap(({ work, ratios, servers }) =>
    Object.entries(ratios).map(([name, reached]) => {
      const [mine, theirs] = [timeOf(servers.ours!), timeOf(servers[name]!)];
      const byTime = mine && theirs ? ` (${(theirs / mine).toFixed(2)} by processor time)` : "";
      const least = TARGETS[name]!;
      return verdict(`${work}: ${reached.toFixed(2)} times ${name}${byTime}`, reached >= least, String(least));
    }),
  );
}

/** Of the server and of Postgres; the ratio of these is steadier on a machine that does other things too. */
function timeOf({ serverTime, postgresTime }: Outcome["servers"][string]): number | null {
  return serverTime === null || postgresTime === null ? null : serverTime + postgresTime;
}
