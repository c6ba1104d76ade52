import { type Claims, parseClaims } from "#accounts/identity";
import { applicablePolicies, type Catalog, type CatalogTable, exposedTables, type Policy } from "#catalog";
import { clientDisconnected, type GatewayRequest, jsonResponse } from "#http";
import type {
  FindingList,
  MatrixPage,
  PolicyInWords,
  RefusalExplanation,
  RowsExplanation,
  TriedTable,
  WritesExplanation,
} from "#operations/admin-types";
import type { StatementContext } from "#postgres/statement";
import { type BodyField, OPTIONAL_TEXT, readFields, TEXT } from "#rest-gateway/sign-in";
import { isJsonObject } from "#runtime/json";
import { collectFindings, findMigrationSql } from "../doctor/collect-findings.ts";
import { explainRead, explainRefusal, parseReadAddress, type ReadExplanation } from "../explain-read.ts";
import { explainWrite, type RequestedWrite, WRITE_COMMANDS, type WriteExplanation } from "../explain-write.ts";
import { makeAssumedContexts } from "../inspect/assumed-contexts.ts";
import { describePolicy } from "../inspect/describe-policy.ts";
import { findMissingTableGrants, withInspectionClients } from "../inspect/explain.ts";
import { listRequestRoles, type PolicyMatrixRow, readTableMatrix } from "../inspect/policy-matrix.ts";
import { invalidRequest } from "./admin-errors.ts";
import { type AdminRequest, type AdminRoutes, type AdminServices, limitRunning } from "./admin-request.ts";
import { requireRole, textClaim, tokenAsUser } from "./issued-tokens.ts";

/** The timeout of each statement, and of each command of the matrix for all callers together. */
const TIMEOUT_MS = 10_000;
/** The maximum number of rows that `why` compares. */
const MAX_ROWS = 10_000;
const TABLES_PER_PAGE = 10;
const MAX_CALLERS = 20;
/** The maximum number of concurrent inspections; each has two connections of its own. */
const MAX_RUNNING = 4;

type AssumedCaller = { readonly role: string; readonly user: string | null; readonly claims: Claims };

const JSON_OBJECT: BodyField<Readonly<Record<string, unknown>>> = {
  isRequired: true,
  accepts: isJsonObject,
  message: 'Send {"role": …, "claims": …} or {"user": …}.',
};

/** A read is explained if the command is null or `select`. */
const OPTIONAL_COMMAND: BodyField<RequestedWrite["command"] | "select" | null> = {
  isRequired: false,
  accepts: (value): value is RequestedWrite["command"] | "select" =>
    value === "select" || WRITE_COMMANDS.some((command) => command === value),
  message: "The command is select, insert, update or delete.",
};
const OPTIONAL_VALUES: BodyField<Readonly<Record<string, unknown>> | null> = {
  isRequired: false,
  accepts: isJsonObject,
  message: "The values are an object with the written columns.",
};

/** Explains privileges and policies: `npm run why`, `npm run policies` and `npm run doctor` for administrators. */
export function accessRoutes(services: AdminServices): AdminRoutes {
  const limited = limitRunning(MAX_RUNNING, "explanations of policies");
  return {
    "POST /why": async (admin) => {
      const { as, ...explained } = await readFields(admin.request, {
        path: TEXT,
        schema: OPTIONAL_TEXT,
        command: OPTIONAL_COMMAND,
        values: OPTIONAL_VALUES,
        as: JSON_OBJECT,
      });
      const caller = await readCaller(as, admin, services);
      return jsonResponse(200, await limited(() => explain(explained, caller, admin.request, services)));
    },
    "GET /policies": async (admin) => {
      const callers = await readCallers(admin, services);
      return jsonResponse(200, await limited(() => readMatrixPage(callers, admin.request, services)));
    },
    "GET /doctor": async ({ request }) => {
      const findings = await collectFindings({
        ...services,
        catalog: services.catalog(),
        findOmitted: services.omittedFromGraphql,
        comparesMigrations: request.query.get("migrations") === "true",
      });
      const list: FindingList = {
        findings: findings.map((finding) => ({ ...finding, sql: findMigrationSql(finding.fix) })),
      };
      return jsonResponse(200, list);
    },
  };
}

/** `{"role": "authenticated", "claims": {"sub": "7"}}`, or `{"user": "7"}` with the claims that the user has. */
async function readCaller(
  { role, claims = {}, user }: Readonly<Record<string, unknown>>,
  { caller }: Pick<AdminRequest, "caller">,
  services: AdminServices,
): Promise<AssumedCaller> {
  if (typeof user === "string") {
    const token = await tokenAsUser(user, caller.claims, services);
    return { role: String(token.claims.role), user, claims: token.claims };
  }
  if (typeof role !== "string" || !isJsonObject(claims)) throw invalidRequest(JSON_OBJECT.message);
  requireRole(role, services);
  return { role, user: null, claims };
}

type ExplainedRequest = {
  readonly path: string;
  /** The schema of a path below /rest/v1; null selects the first exposed one. */
  readonly schema: string | null;
  readonly command: RequestedWrite["command"] | "select" | null;
  readonly values: RequestedWrite["values"];
};

async function explain(
  { path, schema, command: named, values }: ExplainedRequest,
  caller: AssumedCaller,
  request: GatewayRequest,
  services: AdminServices,
): Promise<RowsExplanation | WritesExplanation | RefusalExplanation> {
  const { config, postgres } = services;
  const catalog = services.catalog();
  const { role } = caller;
  const command = named ?? "select";
  const addressed = parseReadAddress(path, schema);
  const context = withTimeout(makeAssumedContexts(catalog, config)(caller, addressed));
  const about = { role, user: caller.user, interface: addressed.interfaceName };
  try {
    const rows = addressed.rows({ catalog, config, role });
    return await withInspectionClients(postgres, { timeoutMs: TIMEOUT_MS, signal: request.signal }, async (clients) => {
      if (command !== "select") {
        const explanation = await explainWrite(rows, { command, values }, { ...clients, catalog, context });
        return { ...about, command, refusal: null, ...writeToJson(explanation) };
      }
      const explanation = await explainRead(rows, { ...clients, catalog, context, maxRows: MAX_ROWS });
      return { ...about, command, refusal: null, ...toJson(explanation, role, catalog) };
    });
  } catch (error) {
    if (request.signal.aborted) throw clientDisconnected(error);
    const { missingGrants, ...refusal } = explainRefusal(error, { catalog, config, role });
    return { ...about, refusal, missing_grants: missingGrants };
  }
}

type AboutRequest = Pick<RowsExplanation, "role" | "user" | "interface">;

/** Replaces the timeout, because the role's own timeout may be longer. */
function withTimeout({ role, settings }: StatementContext): StatementContext {
  return { role, settings: [...settings, ["statement_timeout", String(TIMEOUT_MS)]] };
}

function toJson(
  explanation: ReadExplanation,
  role: string,
  catalog: Catalog,
): Omit<RowsExplanation, "command" | "refusal" | keyof AboutRequest> {
  const { table, visible, total, isPartial, hidden, policies, unreadableColumns, plan } = explanation;
  const bypasses = applicablePolicies(catalog, table, role, "select") === null;
  return {
    table: { schema: table.schema, name: table.name, row_security: table.rowSecurity, bypasses_policies: bypasses },
    visible,
    total,
    is_partial: isPartial,
    hidden: hidden.map(({ key, verdicts }) => ({
      key: Object.fromEntries(table.primaryKey.map((column, index) => [column, key[index]])),
      policies: verdicts.map(({ policy, passes }) => ({ name: policy.name, passes })),
    })),
    policies: policies.map(policyToJson),
    unreadable_columns: unreadableColumns,
    missing_grants: [],
    plan,
  };
}

function writeToJson(
  explanation: WriteExplanation,
): Omit<WritesExplanation, "command" | "refusal" | keyof AboutRequest> {
  const { table, missingGrants, missingToReturn, bypassesPolicies, policies, rows, isPartial } = explanation;
  const { schema, name, rowSecurity } = table;
  return {
    table: { schema, name, row_security: rowSecurity, bypasses_policies: bypassesPolicies },
    missing_grants: missingGrants,
    policies: policies.map(policyToJson),
    rows: rows.map(({ key, checks, returned }) => ({
      key: Object.fromEntries(key.map((value, index) => [table.primaryKey[index]!, value])),
      is_allowed: checks.every(({ passes }) => passes),
      checks: checks.map(checkToJson),
      returned: returned && checkToJson(returned),
    })),
    missing_to_return: missingToReturn,
    is_partial: isPartial,
  };
}

function checkToJson({ results, ...check }: WriteExplanation["rows"][number]["checks"][number]) {
  return { ...check, policies: results.map(({ policy, passes }) => ({ name: policy.name, passes })) };
}

function policyToJson(policy: Policy): PolicyInWords {
  const { name, command, permissive, roles, using, check, comment } = policy;
  return { name, command, permissive, roles, using, check, comment, words: describePolicy(policy) };
}

/** Reads `?role=anon&role=authenticated&claims={"sub":"7"}&user=9`; without a role, returns all roles that requests may take. */
async function readCallers(admin: AdminRequest, services: AdminServices): Promise<AssumedCaller[]> {
  const { query } = admin.request;
  const claims = parseClaims(query.get("claims") ?? "{}");
  if (!claims) throw invalidRequest("claims must be a JSON object.");
  const { config, catalog, postgres } = services;
  const { anonRole } = config;
  const users = query.getAll("user");
  const named = query.getAll("role");
  const all = listRequestRoles(catalog(), { anonRole, loginRole: postgres.loginRole });
  const roles = named.length > 0 ? named : all.filter((role) => catalog().roles.has(role)).slice(0, MAX_CALLERS);
  if (roles.length + users.length > MAX_CALLERS) {
    throw invalidRequest(`At most ${MAX_CALLERS} roles and users can be tried at once.`);
  }
  return Promise.all([
    ...roles.map((role) => readCaller({ role, claims: role === anonRole ? {} : claims }, admin, services)),
    ...users.map((user) => readCaller({ user }, admin, services)),
  ]);
}

/** Reads `?table=public.films` for one table; else a page of tables, and the name that continues it: `?after=public.films`. */
async function readMatrixPage(
  callers: readonly AssumedCaller[],
  { query, signal }: AdminRequest["request"],
  services: AdminServices,
): Promise<MatrixPage> {
  const { config, postgres } = services;
  const catalog = services.catalog();
  const tables = exposedTables(catalog);
  const start = tables.findIndex((table) => nameOf(table) === query.get("after")) + 1;
  const one = query.get("table");
  const page =
    one === null ? tables.slice(start, start + TABLES_PER_PAGE) : tables.filter((table) => nameOf(table) === one);
  const contextOf = makeAssumedContexts(catalog, config);
  const contexts = callers.map((caller) => contextOf(caller, { interfaceName: "table", path: "/" }));
  try {
    const rows = await withInspectionClients(postgres, { timeoutMs: TIMEOUT_MS, signal }, async (clients) => {
      const found: TriedTable[] = [];
      for (const table of page) {
        const matrix = await readTableMatrix(table, { ...clients, catalog, contexts, timeoutMs: TIMEOUT_MS });
        found.push(matrixToJson(table, matrix, callers, catalog));
      }
      return found;
    });
    const isLast = one !== null || start + TABLES_PER_PAGE >= tables.length;
    return {
      callers: callers.map(({ role, user, claims }) => ({
        role,
        user,
        name: textClaim(claims, "email") ?? textClaim(claims, "name"),
      })),
      tables: rows,
      table_count: tables.length,
      next: isLast ? null : nameOf(page.at(-1)!),
    };
  } catch (error) {
    throw signal.aborted ? clientDisconnected(error) : error;
  }
}

function nameOf({ schema, name }: CatalogTable): string {
  return `${schema}.${name}`;
}

function matrixToJson(
  table: CatalogTable,
  matrix: readonly PolicyMatrixRow[],
  callers: readonly AssumedCaller[],
  catalog: Catalog,
): TriedTable {
  const { schema, name, kind, rowSecurity, policies } = table;
  return {
    ...{ schema, name, kind, row_security: rowSecurity },
    total: matrix[0]!.total,
    policies: policies.map(policyToJson),
    commands: matrix.map(({ verb, outcomes }) => ({
      command: verb,
      results: outcomes.map((outcome, index) => {
        const { role } = callers[index]!;
        return {
          ...outcome,
          /** Null if the role bypasses row-level security. */
          policies: applicablePolicies(catalog, table, role, verb)?.map((policy) => policy.name) ?? null,
          missing_grants: findMissingTableGrants({ role, verb, table }, catalog),
        };
      }),
    })),
  };
}
