import type { Finding } from "../engine/inspect/doctor/finding.ts";
import { findDrift } from "../engine/migrate/drift.ts";
import type { Difference } from "../engine/migrate/drift-statements.ts";
import { migrationState } from "../engine/migrate/state.ts";
import type { Postgres } from "../engine/postgres.ts";
import { withClient } from "../engine/with-client.ts";

export type Drift =
  | { readonly differences: readonly Difference[] }
  /** Why it is not known. */
  | { readonly unknown: string };

/** How the database differs from its migrations, if it has all of them. */
export async function readDrift({ ownerUrl, migrate }: Postgres): Promise<Drift> {
  const { kind } = await withClient(ownerUrl, (client) => migrationState(client, migrate.histories));
  if (kind !== "current") return { differences: [] };
  try {
    return { differences: await findDrift(migrate) };
  } catch (error) {
    return { unknown: `The schema was not compared with the migrations: ${(error as Error).message}` };
  }
}

export function driftFindings(drift: Drift): Finding[] {
  if ("unknown" in drift) {
    const fix =
      "Let the owner create databases (alter role … createdb), or set SHADOW_DATABASE_URL and ROOT_DATABASE_URL.";
    return [{ kind: "advice", what: drift.unknown, fix }];
  }
  return drift.differences.map(({ what, keep, undo }) => ({
    kind: "advice",
    what: `The schema is not what the migrations make: ${what}.`,
    fix: `to keep it, in a migration:\n${indented(keep)}\n        to undo it:\n${indented(undo)}`,
  }));
}

function indented(sql: string): string {
  return sql.replace(/^/gm, "          ");
}
