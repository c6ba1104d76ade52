import type pg from "pg";
import { jsonResponse } from "#http";
import { SchemaChangeError, type SchemaChanges } from "#migrate";
import type {
  AppliedSql,
  DryRunResult,
  FailedSql,
  MigrationStatus,
  RowsToCount,
  SqlFault,
} from "#operations/admin-types";
import { type BodyField, OPTIONAL_BOOLEAN, OPTIONAL_TEXT, readFields, TEXT } from "#rest-gateway/sign-in";
import { isJsonObject } from "#runtime/json";
import { toLoggedSql } from "../script/without-secrets.ts";
import { type AdminRoutes, limitRunning } from "./admin-request.ts";

const isCount = (value: unknown): value is RowsToCount => {
  if (!isJsonObject(value) || !isJsonObject(value.table)) return false;
  const { schema, name } = value.table;
  return Array.isArray(value.roles) && [schema, name, ...value.roles].every(TEXT.accepts);
};
const OPTIONAL_COUNT: BodyField<RowsToCount | null> = {
  isRequired: false,
  accepts: isCount,
  message: 'Send {"table": {"schema": …, "name": …}, "roles": […]}.',
};
const CHANGE = { sql: TEXT, name: OPTIONAL_TEXT, dry_run: OPTIONAL_BOOLEAN, count_rows: OPTIONAL_COUNT };

/** The maximum length of the SQL in the audit log. */
const LOGGED_LENGTH = 10_000;
const DEFAULT_NAME = "change the schema";
/** The maximum number of concurrent changes; each has its own connection. */
const MAX_RUNNING = 4;

/** `/migration`: changes of the schema, as a file of the current migration or at once. */
export function migrationRoutes({ schemaChanges }: { readonly schemaChanges: SchemaChanges }): AdminRoutes {
  const limited = limitRunning(MAX_RUNNING, "changes of the schema");
  return {
    "GET /migration": async ({ request }) => {
      const status: MigrationStatus = await schemaChanges.state(request.query.get("name") || undefined);
      return jsonResponse(200, status);
    },
    "POST /migration": async ({ request, logEvent }) => {
      const { sql: sent, name, dry_run: isDryRun, count_rows: counted } = await readFields(request, CHANGE);
      const sql = sent.trim();
      const logged = { sql: toLoggedSql(sql, LOGGED_LENGTH) };
      await logEvent(isDryRun ? "studio.schema_change_tried" : "studio.schema_changed", logged);
      try {
        const done: DryRunResult | AppliedSql = isDryRun
          ? { ...(await limited(() => schemaChanges.dryRun(sql, counted ?? undefined))), error: null }
          : { ...(await schemaChanges.apply(sql, name ?? DEFAULT_NAME)), applied: true, error: null };
        return jsonResponse(200, done);
      } catch (error) {
        if (!(error instanceof SchemaChangeError)) throw error;
        const failed: FailedSql = { error: sqlFaultJson(error) };
        return jsonResponse(200, { ...(isDryRun ? { tried: true } : { applied: false }), ...failed });
      }
    },
  };
}

/** The error of a statement, with its position. */
export function sqlFaultJson({ message, place, cause }: SchemaChangeError): SqlFault {
  const { code = null, detail = null, hint = null } = cause as Partial<pg.DatabaseError>;
  return { message, sqlstate: code, detail, hint, ...place };
}
