import { findRecoverableTimes, planFor, restoreLostRows } from "#cluster";
import { isDifferent, type RestoredTable } from "#cluster/archive";
import { parseRecoveryTarget, type RecoveryTarget } from "#cluster/wal-archive";
import { jsonResponse } from "#http";
import type { FoundLostRows, LostRowsOfTable, LostRowsState } from "#operations/admin-types";
import { OPTIONAL_BOOLEAN, readFields, TEXT } from "#rest-gateway/sign-in";
import { commandLine } from "#runtime";
import { invalidRequest, rejectAsConflict } from "./admin-errors.ts";
import { type AdminRoutes, type AdminServices, limitRunning } from "./admin-request.ts";

const LOST = { at: TEXT, apply: OPTIONAL_BOOLEAN, overwrite: OPTIONAL_BOOLEAN };

type LostRowsServices = Pick<AdminServices, "config" | "postgres" | "schemaChanges" | "log">;

/** `/lost-rows`: rows that were deleted or overwritten since a time. */
export function lostRowsRoutes({ config, postgres, schemaChanges, log }: LostRowsServices): AdminRoutes {
  // Each search replays the WAL in a temporary cluster, which needs as much space as the database.
  const limited = limitRunning(1, "searches for lost rows");
  return {
    "GET /lost-rows": async () => {
      const found = await findRecoverableTimes(config);
      const times = "times" in found ? found.times : null;
      const state: LostRowsState = {
        refusal: schemaChanges.refusal() ?? ("times" in found ? null : found),
        command: commandLine("restore", "--lost --at '10 minutes ago'"),
        recoverable: times && { from: times.from.toISOString(), to: times.to.toISOString() },
      };
      return jsonResponse(200, state);
    },
    "POST /lost-rows": async ({ request, logEvent }) => {
      schemaChanges.requireEnabled();
      const { at, apply, overwrite } = await readFields(request, LOST);
      if (overwrite && !apply) throw invalidRequest("overwrite belongs to apply.");
      const target = parseTime(at);
      const mode = overwrite ? "overwrite" : apply ? "insert" : "preview";
      await logEvent(apply ? "studio.lost_rows_restored" : "studio.lost_rows_searched", { at, overwrite });
      const found = await limited(async () => {
        const plan = await planFor(config, { target, from: null });
        const report = (step: string) => log.info({ step }, "lost rows");
        return restoreLostRows(config, { plan, report, url: postgres.directUrl, mode });
      }).catch(rejectAsConflict);
      const { madeAt, restored, dropped } = found;
      const tables = restored.filter(isDifferent);
      const lost: FoundLostRows = {
        as_of: madeAt,
        compared_tables: restored.length,
        dropped_tables: dropped,
        copy_command: commandLine("restore", `--at ${madeAt} --into FOLDER`),
        tables: tables.map(toJson),
      };
      return jsonResponse(200, lost);
    },
  };
}

function parseTime(at: string): RecoveryTarget {
  const target = tryParse(at);
  if (target === "latest") throw invalidRequest("Specify a time in the past.");
  return target;
}

function tryParse(at: string): RecoveryTarget {
  try {
    return parseRecoveryTarget(at);
  } catch (error) {
    throw invalidRequest((error as Error).message);
  }
}

function toJson({ comparison, applied, dependents }: RestoredTable): LostRowsOfTable {
  const { target, gone, added, missing, different, onlyHere, missingExamples, differentExamples } = comparison;
  return {
    table: target.table,
    key: target.key?.columns.map(({ name }) => name) ?? null,
    missing,
    different,
    only_here: onlyHere,
    missing_examples: missingExamples,
    different_examples: differentExamples,
    gone_columns: gone,
    added_columns: added,
    dependents,
    inserted: applied?.inserted ?? null,
    updated: applied?.updated ?? null,
    skipped_triggers: applied?.skippedTriggers ?? null,
  };
}
