import type { Outcome } from "../comparison/report.ts";
import { verdict } from "../comparison/targets.ts";
import { APOLLO, BARE } from "./servers.ts";
import { CREATE } from "./works.ts";

type TargetsByServer = Readonly<Record<string, number>>;

const READ_TARGETS: TargetsByServer = { [BARE]: 5, [APOLLO]: 4 };
/** Most of a write is Postgres's time, which is the same for all. */
const WRITE_TARGETS: TargetsByServer = { [BARE]: 3, [APOLLO]: 1 };

/** Each target with what was reached, and whether that is enough. Nothing is said of who was not there. */
export function judge(outcomes: readonly Outcome[]): string[] {
  return outcomes.flatMap(({ work, ratios, servers }) =>
    Object.entries(ratios).map(([name, reached]) => {
      const [mine, theirs] = [timeOf(servers.ours!), timeOf(servers[name]!)];
      const byTime = mine && theirs ? ` (${(theirs / mine).toFixed(2)} by processor time)` : "";
      const least = (work === CREATE ? WRITE_TARGETS : READ_TARGETS)[name]!;
      return verdict(`${work}: ${reached.toFixed(2)} times ${name}${byTime}`, reached >= least, String(least));
    }),
  );
}

/** Of the server and of Postgres; the ratio of these is steadier on a machine that does other things too. */
function timeOf({ serverTime, postgresTime }: Outcome["servers"][string]): number | null {
  return serverTime === null || postgresTime === null ? null : serverTime + postgresTime;
}
