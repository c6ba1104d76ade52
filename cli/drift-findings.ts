import type { DoctorFinding } from "../engine/inspect/doctor/facts.ts";
import { findDrift, type SchemaDifference } from "../engine/migrate/drift.ts";
import { readMigrationState } from "../engine/migrate/migration-state.ts";
import { withClient } from "../engine/pg-client/with-client.ts";
import type { PostgresUrls } from "../engine/postgres/served-postgres.ts";

export type SchemaDrift =
  | { readonly differences: readonly SchemaDifference[] }
  /** Why the schema could not be compared. */
  | { readonly unknown: string };

/** Compares the database with its migrations, if all are applied. */
export async function readDrift({ ownerUrl, migrate }: PostgresUrls): Promise<SchemaDrift> {
  const { kind } = await withClient(ownerUrl, (client) => readMigrationState(client, migrate.histories));
  if (kind !== "current") return { differences: [] };
  try {
    return { differences: await findDrift(migrate) };
  } catch (error) {
    return { unknown: `The schema could not be compared with the migrations: ${(error as Error).message}` };
  }
}

export function driftFindings(drift: SchemaDrift): DoctorFinding[] {
  if ("unknown" in drift) {
    const fix =
      "Allow the owner to create databases (alter role … createdb), or set SHADOW_DATABASE_URL and ROOT_DATABASE_URL.";
    return [{ kind: "advice", problem: drift.unknown, fix }];
  }
  return drift.differences.map(({ description, keepSql, undoSql }) => ({
    kind: "advice",
    problem: `The schema differs from the migrations: ${description}.`,
    fix: `To keep it, add to a migration:\n${indent(keepSql)}\n        To undo it:\n${indent(undoSql)}`,
  }));
}

function indent(sql: string): string {
  return sql.replace(/^/gm, "          ");
}
