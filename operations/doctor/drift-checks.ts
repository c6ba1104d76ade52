import type { PostgresUrls } from "#cluster";
import { findDrift, readCurrentState, readMigrationState, type SchemaDifference } from "#migrate";
import { withServiceClient } from "#postgres/client";
import { commandLine } from "#runtime";
import type { DoctorFinding } from "./facts.ts";

type SchemaDrift =
  | {
      readonly differences: readonly SchemaDifference[];
      /** Files of `current/`. */
      readonly pending: readonly string[];
    }
  /** The reason why the schema could not be compared. */
  | { readonly unknown: string };

/** Compares the database with its migrations, if all are applied. */
export async function readDrift({
  directUrl,
  migrate,
}: Pick<PostgresUrls, "directUrl" | "migrate">): Promise<SchemaDrift> {
  const { kind } = await withServiceClient(directUrl, (client) => readMigrationState(client, migrate.histories));
  if (kind !== "current") return { differences: [], pending: [] };
  try {
    const { pending } = await readCurrentState(migrate);
    return { differences: await findDrift(migrate), pending };
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
  const pending = drift.pending.map((file): DoctorFinding => {
    return {
      kind: "advice",
      problem: `${file} is not applied to this database.`,
      fix: `${commandLine("dev")} applies it.`,
    };
  });
  const differences = drift.differences.map(
    ({ description, keepSql, undoSql }): DoctorFinding => ({
      kind: "advice",
      problem: `The schema differs from the migrations: ${description}.`,
      fix: `To keep it, add to a migration:\n${indent(keepSql)}\n        To undo it:\n${indent(undoSql)}`,
    }),
  );
  return [...pending, ...differences];
}

function indent(sql: string): string {
  return sql.replace(/^/gm, "          ");
}
