import { jsonResponse } from "#http";
import { type ListedBackfill, listBackfills, pauseBackfill } from "#migrate";
import type { BackfillList, IncompleteBackfill } from "#operations/admin-types";
import { type BodyField, readFields } from "#rest-gateway/sign-in";
import { commandLine } from "#runtime";
import { rejectAsConflict, resourceNotFound, stateConflict } from "./admin-errors.ts";
import { type AdminRoutes, type AdminServices, NO_CONTENT } from "./admin-request.ts";

const BOOLEAN: BodyField<boolean> = {
  isRequired: true,
  accepts: (value): value is boolean => typeof value === "boolean",
  message: "Send true or false.",
};

/** `/migrations/backfills`: lists incomplete backfills, and pauses or resumes those that a command runs. */
export function backfillRoutes({
  postgres,
  schemaChanges,
}: Pick<AdminServices, "postgres" | "schemaChanges">): AdminRoutes {
  const { url } = postgres.migrate;
  const list = () => listBackfills(url).catch(rejectAsConflict);
  return {
    "GET /migrations/backfills": async () => {
      const listed: BackfillList = {
        refusal: schemaChanges.refusal(),
        run_command: commandLine("migrate", "backfill"),
        backfills: (await list()).map(toJson),
      };
      return jsonResponse(200, listed);
    },
    "POST /migrations/backfills/{backfill}": async ({ request, logEvent }) => {
      schemaChanges.requireEnabled();
      const { paused } = await readFields(request, { paused: BOOLEAN });
      const found = (await list()).find(({ id }) => String(id) === request.parameters.backfill);
      if (!found) throw resourceNotFound("The backfill is complete, or there is none with this id.");
      const { id, table, column, state } = found;
      const explainEnd = () =>
        stateConflict(`Nothing runs the backfill of ${table}.${column}. Run ${commandLine("migrate", "backfill")}.`);
      if (state === "not started" || state === "stopped") throw explainEnd();
      await logEvent(paused ? "studio.backfill_paused" : "studio.backfill_resumed", { table, column });
      if (!(await pauseBackfill(url, id, paused))) throw explainEnd();
      return NO_CONTENT;
    },
  };
}

function toJson({ estimatedRows, progress, ...backfill }: ListedBackfill): IncompleteBackfill {
  if (progress === null) return { ...backfill, estimated_rows: estimatedRows, progress };
  const { rowsPerSecond, waitsFor, startedAt, updatedAt, ...counts } = progress;
  return {
    ...backfill,
    estimated_rows: estimatedRows,
    progress: {
      ...counts,
      rows_per_second: rowsPerSecond,
      waits_for: waitsFor,
      started_at: startedAt.toISOString(),
      updated_at: updatedAt.toISOString(),
    },
  };
}
