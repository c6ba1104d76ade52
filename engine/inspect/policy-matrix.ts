import pg from "pg";
import type { Catalog } from "../catalog/catalog.ts";
import type { Table } from "../catalog/tables.ts";
import type { Context } from "../database/statement.ts";
import { quotedName } from "../quoted-name.ts";
import { type Outcome, tryAll, VERBS, type Verb } from "./attempts.ts";
import { exposedTables } from "./exposed-tables.ts";

export type MatrixRow = {
  readonly table: Table;
  readonly verb: Verb;
  /** How many rows there are; null where the owner cannot tell: a materialized view has no data yet, a foreign server is away. */
  readonly total: number | null;
  /** In the order of the contexts. */
  readonly outcomes: readonly Outcome[];
};

type PolicyMatrixDependencies = {
  readonly catalog: Catalog;
  /** Of everybody who could ask. */
  readonly contexts: readonly Context[];
  /** As the login of requests. */
  readonly login: pg.ClientBase;
  /** As the owner, who sees every row. */
  readonly owner: pg.ClientBase;
  /** Called before each table. */
  readonly onProgress?: (done: number, of: number) => void;
};

/** A row to insert is made from one that is there: this many are tried. */
const MOST_SAMPLES = 5;

/** What each asker reaches of each exposed table, by trying it; everything is undone. */
export async function policyMatrix({
  catalog,
  contexts,
  login,
  owner,
  onProgress,
}: PolicyMatrixDependencies): Promise<MatrixRow[]> {
  const rows: MatrixRow[] = [];
  const tables = exposedTables(catalog);
  for (const [index, table] of tables.entries()) {
    onProgress?.(index, tables.length);
    const { total, samples } = await lookAt(quotedName(table.schema, table.name), owner);
    const attempts = VERBS.flatMap((verb) => contexts.map((context) => ({ verb, table, context })));
    const outcomes = await tryAll(attempts, { client: login, catalog, samples });
    for (const [at, verb] of VERBS.entries()) {
      const ofVerb = outcomes.slice(at * contexts.length, (at + 1) * contexts.length);
      rows.push({ table, verb, total, outcomes: ofVerb });
    }
  }
  return rows;
}

type VisibleRows = { readonly total: number | null; readonly samples: readonly string[] };

async function lookAt(name: string, owner: pg.ClientBase): Promise<VisibleRows> {
  try {
    const { rows } = await owner.query<{ total: number; samples: string[] }>(
      `select (select count(*)::float8 from ${name}) as total,
        array(select to_json(t)::text from ${name} as t limit ${MOST_SAMPLES}) as samples`,
    );
    return rows[0]!;
  } catch (error) {
    if (!(error instanceof pg.DatabaseError)) throw error;
    return { total: null, samples: [] };
  }
}
