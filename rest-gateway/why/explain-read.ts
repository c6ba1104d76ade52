import type pg from "pg";
import type { Catalog } from "../../engine/catalog/catalog.ts";
import type { Policy } from "../../engine/catalog/policies.ts";
import type { Table } from "../../engine/catalog/tables.ts";
import type { Context, Statement } from "../../engine/database/statement.ts";
import { explainStatement, undone } from "../../engine/inspect/undone.ts";
import { KEY, type RequestedRows } from "./requested-rows.ts";
import { judging, type Verdict, verdictsOn } from "./verdicts.ts";

export type Explained = {
  readonly table: Table;
  /** Rows of the request without its page: as the caller, and as somebody whom no policy binds. */
  readonly seen: number;
  readonly total: number;
  /** Some of those that the caller is not shown, and what each policy says of them. */
  readonly hidden: readonly { readonly key: readonly unknown[]; readonly verdicts: readonly Verdict[] }[];
  readonly policies: readonly Policy[];
  /** Columns that the role may not read. */
  readonly closedColumns: readonly string[];
  /** Of the request itself, with its time. */
  readonly plan: string;
};

type Means = {
  readonly catalog: Catalog;
  readonly context: Context;
  /** As the login of requests. */
  readonly login: pg.ClientBase;
  readonly owner: pg.ClientBase;
};

const MOST_HIDDEN = 10;

/** What a caller sees of what is asked, what is kept from them, and by whom. Nothing is changed. */
export async function explainRead(
  { table, prepared, keys }: RequestedRows,
  { catalog, context, login, owner }: Means,
): Promise<Explained> {
  const policies = judging(table, context.role, catalog);
  const closedColumns = [...table.columns.keys()].filter(
    (column) => !catalog.mayRole(context.role, "select", table, column),
  );
  const plan = await undone(login, context, { asRole: true }, () => explainStatement(login, prepared.statement));
  const { statement } = keys();
  const keysFor = async (client: pg.ClientBase) => toKeys(await bodyOf(client, statement), table.primaryKey.length);
  const seen = await undone(login, context, { asRole: true }, () => keysFor(login));
  const all = await undone(owner, context, { asRole: false }, () => keysFor(owner));
  const shown = new Set(seen.map((key) => JSON.stringify(key)));
  const hiddenKeys = all.filter((key) => !shown.has(JSON.stringify(key))).slice(0, MOST_HIDDEN);
  const hidden = await undone(owner, context, { asRole: false }, async () => {
    const judged: Explained["hidden"][number][] = [];
    if (table.primaryKey.length === 0) return judged;
    for (const key of hiddenKeys) judged.push({ key, verdicts: await verdictsOn(key, { table, policies, owner }) });
    return judged;
  });
  return { table, seen: seen.length, total: all.length, hidden, policies, closedColumns, plan };
}

async function bodyOf(client: pg.ClientBase, { text, values }: Statement): Promise<string> {
  const { rows } = await client.query<[string]>({ text, values: [...values], rowMode: "array" });
  return rows[0]![0];
}

function toKeys(body: string | object, columns: number): unknown[][] {
  const rows = (typeof body === "string" ? JSON.parse(body) : body) as Record<string, unknown>[];
  return rows.map((row) => Array.from({ length: columns }, (_, index) => row[`${KEY}${index}`]));
}
