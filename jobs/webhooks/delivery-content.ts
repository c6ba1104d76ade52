import { makeCallerSettings, NO_REQUEST, roleSettings } from "#accounts/identity";
import { type Catalog, type CatalogTable, readTableAccess, type TableAccess } from "#catalog";
import type { Config } from "#config";
import { buildVersionCondition, rowVersionsSql, type VersionCondition } from "#planner";
import type { Database } from "#postgres/database";
import type { StatementContext } from "#postgres/statement";
import { parseQueryParameters, parseQueryString } from "#rest-gateway/table/parse";
import type { LeasedWebhook, RecordedChange } from "./webhook-store.ts";

/** The part of its table that a webhook's role may read, and the condition of its filter. */
export type WebhookScope = {
  readonly table: CatalogTable;
  readonly access: TableAccess;
  readonly condition: VersionCondition | null;
  readonly context: StatementContext;
};

/** The body of a request; `hidden` if the role may not read the row, or the filter excludes it. */
type DeliveryContent =
  | { readonly kind: "body"; readonly body: string }
  | { readonly kind: "hidden" }
  /** A change that can never be sent. */
  | { readonly kind: "unsendable"; readonly reason: string };

const HIDDEN: DeliveryContent = { kind: "hidden" };
/** The start of a row that was too large to be recorded: content_service.large_row. */
const REDUCED_ROW = '{"": true';

type ScopeOptions = {
  readonly catalog: Catalog;
  readonly config: Pick<Config, "usersAccess" | "appSettings">;
};

/** Throws if the role may not read the table, or the filter is wrong. */
export function readWebhookScope(webhook: LeasedWebhook, { catalog, config }: ScopeOptions): WebhookScope {
  const { schema, table: name, role, claimsText, where } = webhook;
  const table = catalog.findTable({ schema, name });
  if (!table) throw new Error(`There is no table ${schema}.${name}, or its schema is not exposed (PGRST_DB_SCHEMAS)`);
  const access = readTableAccess(catalog, table, role);
  if (!access) throw new Error(`The role ${role} may not read the table ${schema}.${name}`);
  const contexts = makeCallerSettings(config);
  const { settings } = contexts({ role, claimsText }, WEBHOOK_REQUEST);
  const condition = where === null ? null : readFilter(where, table, access, { catalog, role });
  return {
    table,
    access,
    condition,
    context: { role, settings: [...roleSettings(catalog.roles.get(role)), ...settings], callerKey: () => webhook.id },
  };
}

const WEBHOOK_REQUEST = { ...NO_REQUEST, interface: "webhooks", method: "POST" } as const;

function readFilter(
  where: string,
  table: CatalogTable,
  { columns }: TableAccess,
  context: { readonly catalog: Catalog; readonly role: string },
): VersionCondition {
  const parameters = parseQueryString(where);
  const { conditions, orders, bounds, page, select, ...others } = parseQueryParameters(parameters, {
    withArguments: false,
  });
  const isFilter = orders.length === 0 && bounds.length === 0 && page === null && others.columns === null;
  if (conditions.length === 0 || conditions.length !== parameters.length || !isFilter)
    throw new Error(`The filter ${JSON.stringify(where)} must consist of conditions: status=eq.paid&total=gt.100`);
  if (conditions.some(({ path }) => path.length > 0))
    throw new Error("The filter may not refer to related rows, which may have changed since");
  const condition = buildVersionCondition(
    conditions.map(({ value }) => value),
    table,
    context,
  );
  const unreadable = [...condition.columns].find((column) => !columns.has(column));
  if (unreadable !== undefined)
    throw new Error(`The filter refers to ${unreadable}, which is no column that the role ${context.role} may read`);
  return condition;
}

/** Returns the columns to read; null for all. Triggers do not see values of virtual generated columns. */
export function sentColumns({ table, access }: WebhookScope): readonly string[] | null {
  const columns = [...access.columns].filter((name) => table.columns.get(name)!.generated?.kind !== "virtual");
  return access.includesAllColumns && columns.length === table.columns.size ? null : columns;
}

/** The results of the checks by row version as JSON. */
type RowChecks = ReadonlyMap<string, { readonly isVisible: boolean; readonly matches: boolean }>;

/** Returns the content of each change, in their order. Policies and filter are evaluated once for all of them. */
export async function readContents(
  changes: readonly RecordedChange[],
  scope: WebhookScope,
  database: Pick<Database, "run">,
): Promise<readonly DeliveryContent[]> {
  const { access, condition, table } = scope;
  if (access.visibility === "none") return changes.map(() => HIDDEN);
  const evaluated = columnsToEvaluate(scope);
  const texts = new Set<string>();
  const reasons = changes.map((change) => findProblem(change, evaluated));
  for (const [at, { old, new: row }] of changes.entries()) {
    if (reasons[at] !== null) continue;
    if (old !== null) texts.add(old);
    if (row !== null) texts.add(row);
  }
  const isDecided = access.visibility === "all" && condition === null;
  const checks: RowChecks = isDecided ? new Map() : await evaluate([...texts], scope, database);
  const checkOf = (text: string) => (isDecided ? { isVisible: true, matches: true } : checks.get(text)!);
  const isWhole = sentColumns(scope) === null;
  return changes.map((change, at) => {
    const reason = reasons[at]!;
    if (reason !== null) return { kind: "unsendable", reason };
    const { old, new: row } = change;
    const { isVisible, matches } = checkOf((row ?? old)!);
    if (!isVisible || !matches) return HIDDEN;
    const isOldVisible = old !== null && checkOf(old).isVisible;
    const record = row === null ? null : isWhole ? row : change.sentNew;
    const oldRecord = isOldVisible ? (isWhole ? old : change.sentOld) : null;
    return { kind: "body", body: writeBody(change, table, record, oldRecord) };
  });
}

function writeBody(
  { type, recordedAt }: RecordedChange,
  { schema, name }: CatalogTable,
  record: string | null,
  oldRecord: string | null,
): string {
  const head = JSON.stringify({ type, schema, table: name }).slice(0, -1);
  return `${head},"record":${record},"old_record":${oldRecord},"timestamp":"${recordedAt}"}`;
}

/** Returns the columns that policies and the filter may read. */
function columnsToEvaluate({ table, access, condition }: WebhookScope): readonly string[] {
  const { visibility } = access;
  const using = typeof visibility === "string" ? "" : visibility.using;
  return [...table.columns.values()]
    .filter(({ name, generated }) => generated === null && (condition?.columns.has(name) || using.includes(name)))
    .map(({ name }) => name);
}

/** A row that was recorded before a column was added or renamed lacks a value for the evaluation of policies. */
function findProblem({ old, new: row }: RecordedChange, evaluated: readonly string[]): string | null {
  const versions = [old, row].filter((version) => version !== null);
  if (versions.some((version) => version.startsWith(REDUCED_ROW))) return "The row has more than 1 MiB";
  const known = evaluated.length === 0 ? [] : versions.map((version) => new Set(Object.keys(JSON.parse(version))));
  const missing = evaluated.find((name) => known.some((names) => !names.has(name)));
  return missing === undefined
    ? null
    : `The change was recorded before the column ${missing} had this name: the policies and the filter cannot be evaluated`;
}

async function evaluate(
  texts: readonly string[],
  { access, condition, table, context }: WebhookScope,
  database: Pick<Database, "run">,
): Promise<RowChecks> {
  if (texts.length === 0) return new Map();
  const using = typeof access.visibility === "string" ? "true" : access.visibility.using;
  const { text: where = "true", values = [] } = condition ?? {};
  // Generated columns are computed anew: virtual ones were not recorded.
  const rows = rowVersionsSql(table, { isPresent: () => false, parameter: `$${values.length + 1}` });
  const statement = {
    text: `select coalesce((${using}), false), coalesce((${where}), false)\n${rows}`,
    values: [...values, `[${texts.join(",")}]`],
  };
  const result = await database.run(context, statement, { readOnly: true });
  return new Map(
    result.rows.map(([isVisible, matches], at) => [
      texts[at]!,
      { isVisible: isVisible === "t", matches: matches === "t" },
    ]),
  );
}
