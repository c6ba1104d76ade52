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
import { OPTIONAL_BOOLEAN, readFields } from "#rest-gateway/sign-in";
import { commandLine } from "#runtime";
import { toSignal } from "#runtime/concurrency";
import { addAffectedRequests } from "../contract/affected-requests.ts";
import { compareContracts, printChanges } from "../contract/compare-contracts.ts";
import { readRecordedRequests, toRequestRates } from "../contract/recorded-requests.ts";
import { rejectAsConflict, toStateConflict } from "./admin-errors.ts";
import type { AdminRequest, AdminRoutes, AdminServices } from "./admin-request.ts";
import { sqlFaultJson } from "./migration-routes.ts";

/** What the copy for a rehearsal or a comparison is made of. */
type CopyBasis = "database" | "committed migrations";

type ChangesServices = Pick<AdminServices, "postgres" | "asOwner" | "schemaChanges" | "checkContract">;

/** `/migrations`: what is pending, what it would hold up, and what it changes for clients. */
export function changesRoutes({ postgres, asOwner, schemaChanges, checkContract }: ChangesServices): AdminRoutes {
  const { migrate } = postgres;

  /** Runs the work on a copy, and responds with its result, or with the error of a migration. */
  const onCopy = async (
    { request, logEvent }: AdminRequest,
    { event, withRows }: CopyRequest,
    work: (settings: MigrateSettings, basis: CopyBasis) => Promise<object>,
  ): Promise<GatewayResponse<ResponseBody>> => {
    schemaChanges.requireEnabled();
    await logEvent(event, { with_rows: withRows });
    const signal = toSignal(request.signal);
    const warnings: string[] = [];
    const warn = (warning: string) => warnings.push(warning);
    try {
      const basis = chooseBasis(await listMigrations(migrate), withRows);
      const workOn = (settings: MigrateSettings) => work(settings, basis);
      const result = await (basis === "database"
        ? withSchemaCopy(postgres, { withRows, warn, signal }, workOn)
        : withCommittedSchema(migrate, { signal }, workOn));
      return jsonResponse(200, { basis, warnings, ...result, error: null });
    } catch (error) {
      if (signal.aborted) throw clientDisconnected(error);
      if (!(error instanceof MigrationError)) throw toStateConflict(error);
      return jsonResponse(200, { error: sqlFaultJson(new SchemaChangeError(error)) });
    }
  };

  return {
    "GET /migrations": async () => {
      const { pending, applied } = await listMigrations(migrate).catch(rejectAsConflict);
      return jsonResponse(200, {
        refusal: schemaChanges.refusal(),
        commands: {
          rehearse: commandLine("migrate", "rehearse"),
          diff: commandLine("migrate", "diff"),
          commit: commandLine("migrate", 'commit "what it does"'),
          migrate: commandLine("migrate"),
        },
        pending: pending.map(({ isCurrent, isApplied, ...migration }) => {
          return { ...migration, is_current: isCurrent, is_applied: isApplied };
        }),
        applied: applied.map(({ appliedAt, ...migration }) => ({ ...migration, applied_at: appliedAt })),
      });
    },
    "POST /migrations/rehearsal": async (administration) => {
      const { with_rows: sent } = await readFields(administration.request, { with_rows: OPTIONAL_BOOLEAN });
      const withRows = sent === true;
      const options = { event: "studio.migrations_rehearsed", withRows };
      return onCopy(administration, options, async (settings, basis) => {
        const originalUrl = basis === "database" ? postgres.directUrl : null;
        const requests = await asOwner(readRecordedRequests);
        const requestRates = requests && toRequestRates(requests);
        return { statements: await rehearseMigrations(settings, { originalUrl, withRows, requestRates }) };
      });
    },
    "POST /migrations/diff": async (administration) => {
      const options = { event: "studio.interfaces_compared", withRows: false };
      return onCopy(administration, options, async (settings, basis) => {
        const requests = await asOwner(readRecordedRequests);
        const { contract: before } = await checkContract(basis === "database" ? postgres.directUrl : settings.url, []);
        await runMigrations({ name: "current" }, settings);
        const { contract: after, refusals } = await checkContract(settings.url, requests ?? []);
        const found = compareContracts(before, after);
        const changes = requests === null ? found : addAffectedRequests(found, before, { requests, refusals });
        return { changes, markdown: printChanges(changes) };
      });
    },
  };
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
