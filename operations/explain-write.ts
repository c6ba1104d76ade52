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
import {
  evaluatePolicies,
  type PolicyResult,
  type RequestedRows,
  type RowQuery,
  readKeys,
  readRowAsText,
} from "./explain-read.ts";
import { findMissingTableGrants, inRolledBackTransaction, lacksUsage } from "./inspect/explain.ts";

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
  readonly results: readonly PolicyResult[];
};

type CheckedRow = {
  readonly key: readonly unknown[];
  readonly checks: readonly WriteCheck[];
  /** The policies for reading an inserted row, which an insert needs only if it returns the row. Null for other commands. */
  readonly returned: WriteCheck | null;
};

export type WriteExplanation = {
  readonly table: CatalogTable;
  readonly missingGrants: readonly string[];
  /** True if the role bypasses policies at this table. */
  readonly bypassesPolicies: boolean;
  readonly policies: readonly Policy[];
  /** The first addressed rows, or the inserted one, which has no key. */
  readonly rows: readonly CheckedRow[];
  /** Grants without which an insert cannot return its row. */
  readonly missingToReturn: readonly string[];
  readonly isPartial: boolean;
};

type ExplainWriteConnections = {
  readonly catalog: Catalog;
  readonly context: StatementContext;
  /** The login of requests. */
  readonly login: pg.ClientBase;
  readonly owner: pg.ClientBase;
};

const MAX_ROWS = 10;

/**
 * Explains which privileges and policies let the role write rows, or refuse it. Nothing is written: conditions are evaluated as the
 * caller, on the rows as they are, and as they would be before triggers.
 */
export async function explainWrite(
  rows: RequestedRows,
  write: RequestedWrite,
  { catalog, context, login, owner }: ExplainWriteConnections,
): Promise<WriteExplanation> {
  const { table } = rows;
  const { role } = context;
  const policies = applicablePolicies(catalog, table, role, write.command);
  const selecting = applicablePolicies(catalog, table, role, "select") ?? [];
  // Policies cannot be evaluated as a role that cannot name their table.
  const isEvaluated = policies !== null && !lacksUsage(role, table, catalog);
  const stages = isEvaluated ? stagesOf(write, { policies, selecting }) : [];
  const isAllowed = isEvaluated && policies.length > 0;
  const returning: CheckStage | null =
    isAllowed && write.command === "insert" ? { command: "select", on: "new", policies: selecting } : null;
  const evaluated = new Set(
    [...stages, ...(returning ? [returning] : [])].flatMap(({ on, policies }) => (policies.length > 0 ? on : [])),
  );
  const { tried, isPartial } = await inRolledBackTransaction(owner, context, { asRole: false }, async () => {
    const keys = await findKeys(rows, write, owner);
    const found: TriedRow[] = [];
    for (const key of keys.slice(0, MAX_ROWS)) {
      const contents = new Map<CheckStage["on"], string | null>();
      for (const on of evaluated) contents.set(on, await readRowAsText(rowStatement(table, { key, write, on }), owner));
      found.push({ key, contents });
    }
    return { tried: found, isPartial: keys.length > MAX_ROWS };
  });
  const explained = await inRolledBackTransaction(login, context, { asRole: true }, async () => {
    const checked: CheckedRow[] = [];
    for (const { key, contents } of tried) {
      const run = (stage: CheckStage) => runCheck(stage, { table, login, content: contents.get(stage.on) ?? null });
      const checks: WriteCheck[] = [];
      for (const stage of stages) checks.push(await run(stage));
      checked.push({ key, checks, returned: returning && (await run(returning)) });
    }
    return checked;
  });
  const needsReading = write.command !== "insert" || explained.some(({ returned }) => returned?.passes === false);
  return {
    table,
    missingGrants: missingGrantsOf(table, write, role, catalog),
    missingToReturn: write.command === "insert" ? findMissingTableGrants({ role, verb: "select", table }, catalog) : [],
    bypassesPolicies: policies === null,
    policies: [...new Set([...(policies ?? []), ...(needsReading ? selecting : [])])],
    rows: explained,
    isPartial,
  };
}

/** Returns the keys of the addressed rows; one empty key for the row that an insert would add. */
async function findKeys(
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

/** A row that is tried, as it is and as it is written; as text. */
type TriedRow = { readonly key: readonly unknown[]; readonly contents: ReadonlyMap<CheckStage["on"], string | null> };

type CheckedContent = { readonly table: CatalogTable; readonly login: pg.ClientBase; readonly content: string | null };

async function runCheck(
  { command, on, policies }: CheckStage,
  { table, login, content }: CheckedContent,
): Promise<WriteCheck> {
  const isChecked = on === "new" && command !== "select";
  const conditionOf = (policy: Policy) => (isChecked ? policy.check : null) ?? policyCondition(policy);
  const results = await evaluatePolicies(content, { table, policies, login, conditionOf });
  const { permissive = [], restrictive = [] } = Object.groupBy(results, ({ policy }) =>
    policy.permissive ? "permissive" : "restrictive",
  );
  const passes = permissive.some((each) => each.passes) && restrictive.every((each) => each.passes);
  return { command, on, passes, results };
}

type RequestedRow = Pick<TriedRow, "key"> & { readonly write: RequestedWrite } & Pick<CheckStage, "on">;

/** Selects the row with the key; a new row has the written values. */
function rowStatement(table: CatalogTable, { key, write, on }: RequestedRow): RowQuery {
  const written = on === "new" ? [JSON.stringify(write.values ?? {})] : [];
  return { text: rowSql(table, write, on), values: [...key, ...written] };
}

/** The written values are the last parameter, after the values of the key. */
function rowSql(table: CatalogTable, write: RequestedWrite, on: CheckStage["on"]): string {
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
