import type pg from "pg";
import {
  applicablePolicies,
  type Catalog,
  type CatalogTable,
  hasAnyColumnPrivilege,
  type Policy,
  policyCondition,
} from "#catalog";
import type { WriteCommand } from "#operations/admin-types";
import { quotedName } from "#postgres/client";
import type { StatementContext } from "#postgres/statement";
import { type RequestedRows, readKeys } from "./explain-read.ts";
import { findMissingTableGrants, inRolledBackTransaction } from "./inspect/explain.ts";

export const WRITE_COMMANDS: readonly WriteCommand[] = ["insert", "update", "delete"];

export type RequestedWrite = {
  readonly command: WriteCommand;
  /** The written columns; null if a delete writes none, or if they are unknown. */
  readonly values: Readonly<Record<string, unknown>> | null;
};

/** The results of the policies for one command on a row, before the write or as it would be written. */
type WriteCheck = {
  readonly command: "select" | WriteCommand;
  readonly on: "existing" | "new";
  readonly passes: boolean;
  /** Null if the condition is null, which refuses the row too. */
  readonly results: readonly { readonly policy: Policy; readonly passes: boolean | null }[];
};

export type WriteExplanation = {
  readonly table: CatalogTable;
  readonly missingGrants: readonly string[];
  /** True if the role bypasses policies at this table. */
  readonly bypassesPolicies: boolean;
  readonly policies: readonly Policy[];
  /** The first addressed rows, or the inserted one, which has no key. */
  readonly rows: readonly { readonly key: readonly unknown[]; readonly checks: readonly WriteCheck[] }[];
  readonly isPartial: boolean;
};

type ExplainWriteConnections = {
  readonly catalog: Catalog;
  readonly context: StatementContext;
  readonly owner: pg.ClientBase;
};

const MAX_ROWS = 10;

/**
 * Explains which privileges and policies let the role write rows, or refuse it. Nothing is written: conditions are evaluated on
 * the rows as they are, and as they would be before triggers.
 */
export async function explainWrite(
  rows: RequestedRows,
  write: RequestedWrite,
  { catalog, context, owner }: ExplainWriteConnections,
): Promise<WriteExplanation> {
  const { table } = rows;
  const { role } = context;
  const policies = applicablePolicies(catalog, table, role, write.command);
  const selecting = write.command === "insert" ? [] : (applicablePolicies(catalog, table, role, "select") ?? []);
  const explanation = {
    table,
    missingGrants: missingGrantsOf(table, write, role, catalog),
    bypassesPolicies: policies === null,
    policies: [...new Set([...(policies ?? []), ...selecting])],
  };
  return inRolledBackTransaction(owner, context, { asRole: false }, async () => {
    const sources = await findRows(rows, write, owner);
    const stages = policies === null ? [] : stagesOf(write, { policies, selecting });
    const explained: WriteExplanation["rows"][number][] = [];
    for (const key of sources.slice(0, MAX_ROWS)) {
      const checks: WriteCheck[] = [];
      for (const stage of stages) checks.push(await runCheck(stage, { table, key, write, owner }));
      explained.push({ key, checks });
    }
    return { ...explanation, rows: explained, isPartial: sources.length > MAX_ROWS };
  });
}

/** Returns the keys of the addressed rows; one empty key for the row that an insert would add. */
async function findRows(
  rows: RequestedRows,
  { command }: RequestedWrite,
  owner: pg.ClientBase,
): Promise<readonly (readonly unknown[])[]> {
  if (command === "insert") return [[]];
  return rows.table.primaryKey.length === 0 ? [] : readKeys(owner, rows, MAX_ROWS + 1);
}

function missingGrantsOf(
  table: CatalogTable,
  { command, values }: RequestedWrite,
  role: string,
  catalog: Catalog,
): readonly string[] {
  const missing = [
    ...findMissingTableGrants({ role, verb: command, table }, catalog),
    ...(command === "insert" ? [] : findMissingTableGrants({ role, verb: "select", table }, catalog)),
  ];
  if (command !== "delete" && hasAnyColumnPrivilege(catalog, role, command, table)) {
    const refused = Object.keys(values ?? {}).filter(
      (name) => table.columns.has(name) && !catalog.hasPrivilege(role, command, table, name),
    );
    const columns = refused.map((name) => quotedName(name)).join(", ");
    const target = quotedName(table.schema, table.name);
    if (columns !== "") missing.push(`grant ${command} (${columns}) on ${target} to ${quotedName(role)};`);
  }
  return [...new Set(missing)];
}

type CheckStage = Pick<WriteCheck, "command" | "on"> & { readonly policies: readonly Policy[] };

/** The stages in Postgres's order. A statement that finds its rows by a condition also needs the policies for reading, before and after. */
function stagesOf(
  { command, values }: RequestedWrite,
  { policies, selecting }: { readonly policies: readonly Policy[]; readonly selecting: readonly Policy[] },
): readonly CheckStage[] {
  const writing = { command, policies };
  const reading = { command: "select" as const, policies: selecting };
  if (command === "insert") return [{ ...writing, on: "new" }];
  const before: CheckStage[] = [
    { ...reading, on: "existing" },
    { ...writing, on: "existing" },
  ];
  if (command === "delete" || values === null) return before;
  return [...before, { ...writing, on: "new" }, { ...reading, on: "new" }];
}

type CheckedRow = {
  readonly table: CatalogTable;
  readonly key: readonly unknown[];
  readonly write: RequestedWrite;
  readonly owner: pg.ClientBase;
};

async function runCheck({ command, on, policies }: CheckStage, row: CheckedRow): Promise<WriteCheck> {
  const results = policies.length === 0 ? [] : await evaluate(policies, { ...row, command, on });
  const { permissive = [], restrictive = [] } = Object.groupBy(results, ({ policy }) =>
    policy.permissive ? "permissive" : "restrictive",
  );
  const passes = permissive.some((each) => each.passes) && restrictive.every((each) => each.passes);
  return { command, on, passes, results };
}

async function evaluate(
  policies: readonly Policy[],
  { table, key, write, owner, command, on }: CheckedRow & Pick<CheckStage, "command" | "on">,
): Promise<WriteCheck["results"]> {
  const isChecked = on === "new" && command !== "select";
  // The conditions have the form of pg_get_expr, whose subqueries qualify columns by the name of the table.
  const conditions = policies.map((policy) => {
    return `(${(isChecked ? policy.check : null) ?? policyCondition(policy)})`;
  });
  const { rows } = await owner.query<(boolean | null)[]>({
    text: `select ${conditions.join(", ")} from (${rowSql(table, { write, on })}) as ${quotedName(table.name)}`,
    values: [...key, ...(on === "new" ? [JSON.stringify(write.values ?? {})] : [])],
    rowMode: "array",
  });
  return policies.map((policy, index) => ({ policy, passes: rows[0]?.[index] ?? null }));
}

/** Selects the row with the key $1, $2, …; a new row has the written values, which are the last parameter. */
function rowSql(table: CatalogTable, { write, on }: Pick<CheckedRow, "write"> & Pick<CheckStage, "on">): string {
  const name = quotedName(table.schema, table.name);
  if (write.command === "insert") return insertedRowSql(table, write);
  const found = table.primaryKey.map((column, index) => `t.${quotedName(column)} = $${index + 1}`).join(" and ");
  const columns = on === "new" ? `(pg_catalog.jsonb_populate_record(t, $${table.primaryKey.length + 1})).*` : "t.*";
  return `select ${columns} from ${name} as t where ${found}`;
}

/** A sequence cannot be read without advancing it, so its next value is null. */
const ADVANCES_SEQUENCE = /\bnextval\(/;

function insertedRowSql({ schema, name, columns }: CatalogTable, { values }: RequestedWrite): string {
  const values_ = [...columns.values()].map((column) => {
    const isDefault = !Object.hasOwn(values ?? {}, column.name) && column.default !== null;
    const isReadable = isDefault && !column.identity && !ADVANCES_SEQUENCE.test(column.default ?? "");
    const value = isReadable ? `(${column.default})` : `r.${quotedName(column.name)}`;
    return `${value} as ${quotedName(column.name)}`;
  });
  return `select ${values_.join(", ")} from pg_catalog.jsonb_populate_record(null::${quotedName(schema, name)}, $1) as r`;
}
