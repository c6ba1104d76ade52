import type { Facts, Replica } from "./facts.ts";
import type { Finding } from "./finding.ts";

/** The servers that reads may go to. */
export function replicaFindings({ replicas }: Facts): Finding[] {
  return replicas.flatMap((replica, index) => findingsOf(replica, `Replica ${index + 1} of READ_DATABASE_URLS`));
}

function findingsOf({ host, status }: Replica, name: string): Finding[] {
  const named = `${name} (${host})`;
  switch (status) {
    case "away":
      return [{ kind: "advice", what: `${named} does not answer; reads go elsewhere.`, fix: "-- Start it." }];
    case "primary":
      return [{ kind: "danger", what: `${named} is no replica.`, fix: "READ_DATABASE_URLS without it" }];
    case "without feedback":
      return [
        {
          kind: "advice",
          what: `${named} has reads cancelled when rows are vacuumed that they still see.`,
          fix: "alter system set hot_standby_feedback = on; select pg_reload_conf();  -- on the replica",
        },
      ];
    case "well":
      return [];
  }
}
