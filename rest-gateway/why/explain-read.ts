import type pg from "pg";
import type { Catalog } from "../../engine/catalog/catalog.ts";
import type { CatalogTable, Policy } from "../../engine/catalog/tables.ts";
import type { Statement, StatementContext } from "../../engine/database/statement.ts";
import { explainStatement, inRolledBackTransaction } from "../../engine/inspect/explain.ts";
import { quotedName } from "../../engine/pg-client/quoted-name.ts";
import { KEY_ALIAS, type RequestedRows } from "./requested-rows.ts";

export type ReadExplanation = {
  readonly table: CatalogTable;
  /** The number of rows without pagination: as the caller, and without row-level security. */
  readonly visible: number;
  readonly total: number;
  /** Some rows that are hidden from the caller, with the result of each policy. */
  readonly hidden: readonly { readonly key: readonly unknown[]; readonly verdicts: readonly PolicyResult[] }[];
  readonly policies: readonly Policy[];
  /** Columns that the role may not read. */
  readonly unreadableColumns: readonly string[];
  /** EXPLAIN ANALYZE of the request. */
  readonly plan: string;
};

type ExplainConnections = {
  readonly catalog: Catalog;
  readonly context: StatementContext;
  /** The login of requests. */
  readonly login: pg.ClientBase;
  readonly owner: pg.ClientBase;
};

const MAX_HIDDEN = 10;

/** Explains which rows of a request the caller sees, which are hidden, and by which policies. Changes nothing. */
export async function explainRead(
  { table, prepared, keys }: RequestedRows,
  { catalog, context, login, owner }: ExplainConnections,
): Promise<ReadExplanation> {
  const policies = readPoliciesOf(table, context.role, catalog);
  const unreadableColumns = [...table.columns.keys()].filter(
    (column) => !catalog.hasPrivilege(context.role, "select", table, column),
  );
  const plan = await inRolledBackTransaction(login, context, { asRole: true }, () =>
    explainStatement(login, prepared.statement),
  );
  const { statement } = keys();
  const keysFor = async (client: pg.ClientBase) => toKeys(await bodyOf(client, statement), table.primaryKey.length);
  const visible = await inRolledBackTransaction(login, context, { asRole: true }, () => keysFor(login));
  const all = await inRolledBackTransaction(owner, context, { asRole: false }, () => keysFor(owner));
  const visibleKeys = new Set(visible.map((key) => JSON.stringify(key)));
  const hiddenKeys = all.filter((key) => !visibleKeys.has(JSON.stringify(key))).slice(0, MAX_HIDDEN);
  const hidden = await inRolledBackTransaction(owner, context, { asRole: false }, async () => {
    const explained: ReadExplanation["hidden"][number][] = [];
    if (table.primaryKey.length === 0) return explained;
    for (const key of hiddenKeys)
      explained.push({ key, verdicts: await evaluatePolicies(key, { table, policies, owner }) });
    return explained;
  });
  return { table, visible: visible.length, total: all.length, hidden, policies, unreadableColumns, plan };
}

async function bodyOf(client: pg.ClientBase, { text, values }: Statement): Promise<string> {
  const { rows } = await client.query<[string]>({ text, values: [...values], rowMode: "array" });
  return rows[0]![0];
}

function toKeys(body: string | object, columns: number): unknown[][] {
  const rows = (typeof body === "string" ? JSON.parse(body) : body) as Record<string, unknown>[];
  return rows.map((row) => Array.from({ length: columns }, (_, index) => row[`${KEY_ALIAS}${index}`]));
}

type PolicyResult = {
  readonly policy: Policy;
  /** Null if the condition is null, which hides the row too. */
  readonly passes: boolean | null;
};

/** The policies for reads of the role; empty if no policy applies to it. */
export function readPoliciesOf(table: CatalogTable, role: string, catalog: Catalog): readonly Policy[] {
  return table.policies.filter(
    ({ command, roles }) =>
      (command === "all" || command === "select") &&
      roles.some((name) => name === "public" || catalog.hasRole(role, name)),
  );
}

/** Evaluates each policy on one row, as the owner, in a transaction with the caller's settings. */
async function evaluatePolicies(
  key: readonly unknown[],
  { table, policies, owner }: { table: CatalogTable; policies: readonly Policy[]; owner: pg.ClientBase },
): Promise<PolicyResult[]> {
  if (policies.length === 0) return [];
  // Conditions in the form of pg_get_expr, with unqualified columns.
  const conditions = policies.map(({ using }) => `(${using ?? "true"})`).join(", ");
  const found = table.primaryKey.map((column, index) => `${quotedName(column)} = $${index + 1}`).join(" and ");
  const { rows } = await owner.query<(boolean | null)[]>({
    text: `select ${conditions} from ${quotedName(table.schema, table.name)} where ${found}`,
    values: [...key],
    rowMode: "array",
  });
  return policies.map((policy, index) => ({ policy, passes: rows[0]?.[index] ?? null }));
}
