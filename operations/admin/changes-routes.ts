import { withSchemaCopy } from "#cluster/archive";
import { clientDisconnected, type GatewayResponse, jsonResponse, type ResponseBody } from "#http";
import {
  listMigrations,
  type MigrateSettings,
  MigrationError,
  type MigrationList,
  rehearseMigrations,
  runMigrations,
  SchemaChangeError,
  withCommittedSchema,
} from "#migrate";
import type {
  CopyBasis,
  CopyOrigin,
  FailedSql,
  InterfaceComparison,
  LastMigrationUndo,
  MigrationsState,
  RehearsedMigrations,
} from "#operations/admin-types";
import { OPTIONAL_BOOLEAN, OPTIONAL_TEXT, readFields } from "#rest-gateway/sign-in";
import { commandLine } from "#runtime";
import { toSignal } from "#runtime/concurrency";
import { readRecordedRequests, readRequestRates } from "../contract/recorded-requests.ts";
import { rejectAsConflict, toStateConflict } from "./admin-errors.ts";
import type { AdminRequest, AdminRoutes, AdminServices } from "./admin-request.ts";
import { sqlFaultJson } from "./migration-routes.ts";

type ChangesServices = Pick<AdminServices, "postgres" | "asOwner" | "schemaChanges" | "compareInterfaces">;

/** `/migrations`: the pending migrations, the sessions that they would block, and the changes for clients. */
export function changesRoutes({ postgres, asOwner, schemaChanges, compareInterfaces }: ChangesServices): AdminRoutes {
  const { migrate } = postgres;

  /** Runs the work on a copy, and responds with its result or with the error of a migration. */
  const onCopy = async <Result extends RehearsedMigrations | InterfaceComparison>(
    { request, logEvent }: AdminRequest,
    { event, withRows }: CopyRequest,
    work: (settings: MigrateSettings, basis: CopyBasis, signal: AbortSignal) => Promise<Result>,
  ): Promise<GatewayResponse<ResponseBody>> => {
    schemaChanges.requireEnabled();
    await logEvent(event, { with_rows: withRows });
    const signal = toSignal(request.signal);
    const warnings: string[] = [];
    const warn = (warning: string) => warnings.push(warning);
    return respondWithFault(signal, async () => {
      const basis = chooseBasis(await listMigrations(migrate), withRows);
      const workOn = (settings: MigrateSettings) => work(settings, basis, signal);
      const result = await (basis === "database"
        ? withSchemaCopy(postgres, { withRows, warn, signal }, workOn)
        : withCommittedSchema(migrate, { signal }, workOn));
      const copy: CopyOrigin = { basis, warnings, error: null };
      return { ...copy, ...result };
    });
  };

  return {
    "GET /migrations": async () => {
      const { pending, applied } = await listMigrations(migrate).catch(rejectAsConflict);
      const state: MigrationsState = {
        refusal: schemaChanges.refusal(),
        commands: {
          rehearse: commandLine("migrate", "rehearse"),
          diff: commandLine("migrate", "diff"),
          commit: commandLine("migrate", 'commit "what it does"'),
          migrate: commandLine("migrate"),
          undo: commandLine("migrate", "undo"),
        },
        pending: pending.map(({ isCurrent, isApplied, ...migration }) => {
          return { ...migration, is_current: isCurrent, is_applied: isApplied };
        }),
        applied: applied.map(({ appliedAt, ...migration }) => ({ ...migration, applied_at: appliedAt.toISOString() })),
      };
      return jsonResponse(200, state);
    },
    "POST /migrations/undo": async ({ request, logEvent }) => {
      schemaChanges.requireEnabled();
      const { confirmed_file: confirmedFile } = await readFields(request, { confirmed_file: OPTIONAL_TEXT });
      await logEvent("studio.migration_undo_tried", { file: confirmedFile });
      const signal = toSignal(request.signal);
      return respondWithFault(signal, async () => {
        const { changedSince, isUndone, ...undone } = await schemaChanges.undo({ confirmedFile, signal });
        if (isUndone) await logEvent("studio.migration_undone", { file: confirmedFile });
        const undo: LastMigrationUndo = { ...undone, changed_since: changedSince, is_undone: isUndone, error: null };
        return undo;
      });
    },
    "POST /migrations/rehearsal": async (administration) => {
      const { with_rows: sent } = await readFields(administration.request, { with_rows: OPTIONAL_BOOLEAN });
      const withRows = sent === true;
      const options = { event: "studio.migrations_rehearsed", withRows };
      return onCopy<RehearsedMigrations>(administration, options, async (settings, basis) => {
        const originalUrl = basis === "database" ? postgres.directUrl : null;
        const requestRates = await asOwner(readRequestRates);
        return { statements: await rehearseMigrations(settings, { originalUrl, withRows, requestRates }) };
      });
    },
    "POST /migrations/diff": async (administration) => {
      const options = { event: "studio.interfaces_compared", withRows: false };
      return onCopy<InterfaceComparison>(administration, options, async (settings, basis, signal) => {
        const beforeUrl = basis === "database" ? postgres.directUrl : settings.url;
        const requests = await asOwner(readRecordedRequests);
        return compareInterfaces({ beforeUrl, afterUrl: settings.url, requests, signal }, () =>
          runMigrations({ name: "current" }, settings),
        );
      });
    },
  };
}

/** Responds with the result, or with the error of a migration. */
async function respondWithFault(
  signal: AbortSignal,
  work: () => Promise<{ readonly error: null }>,
): Promise<GatewayResponse<ResponseBody>> {
  try {
    return jsonResponse(200, await work());
  } catch (error) {
    if (signal.aborted) throw clientDisconnected(error);
    if (!(error instanceof MigrationError)) throw toStateConflict(error);
    const failed: FailedSql = { error: sqlFaultJson(new SchemaChangeError(error)) };
    return jsonResponse(200, failed);
  }
}

type CopyRequest = { readonly event: string; readonly withRows: boolean };

/** A copy of a database that has applied files of `current/` would have nothing to rehearse. */
function chooseBasis({ pending }: MigrationList, withRows: boolean): CopyBasis {
  if (!pending.some(({ isCurrent, isApplied }) => isCurrent && isApplied)) return "database";
  if (!withRows) return "committed migrations";
  throw new Error(
    "Files of current/ are applied to this database, and its rows are as these have left them. Rehearse without rows.",
  );
}
