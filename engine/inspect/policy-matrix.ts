import type pg from "pg";
import type { Catalog } from "../catalog/catalog.ts";
import type { Table } from "../catalog/tables.ts";
import type { Context } from "../database/statement.ts";
import { quotedName } from "../quoted-name.ts";
import { attempt, type Outcome, VERBS, type Verb } from "./attempt.ts";
import { exposedTables } from "./exposed-tables.ts";

export type MatrixRow = {
  readonly table: Table;
  readonly verb: Verb;
  /** How many rows there are. */
  readonly total: number;
  /** In the order of the contexts. */
  readonly outcomes: readonly Outcome[];
};

type Means = {
  readonly catalog: Catalog;
  /** Of everybody who could ask. */
  readonly contexts: readonly Context[];
  /** As the login of requests. */
  readonly login: pg.ClientBase;
  /** As the owner, who sees every row. */
  readonly owner: pg.ClientBase;
};

/** A row to insert is made from one that is there: this many are tried. */
const MOST_SAMPLES = 5;

/** What each asker reaches of each exposed table, by trying it; everything is undone. */
export async function policyMatrix({ catalog, contexts, login, owner }: Means): Promise<MatrixRow[]> {
  const rows: MatrixRow[] = [];
  for (const table of exposedTables(catalog)) {
    const name = quotedName(table.schema, table.name);
    const { total, samples } = await lookAt(name, owner);
    const surroundings = { client: login, catalog, samples };
    for (const verb of VERBS) {
      const outcomes: Outcome[] = [];
      for (const context of contexts) outcomes.push(await attempt(verb, table, context, surroundings));
      rows.push({ table, verb, total, outcomes });
    }
  }
  return rows;
}

async function lookAt(name: string, owner: pg.ClientBase): Promise<{ total: number; samples: string[] }> {
  const { rows: counted } = await owner.query<{ total: number }>(`select count(*)::int as total from ${name}`);
  const { rows } = await owner.query<{ sample: string }>(
    `select to_json(t)::text as sample from ${name} as t limit ${MOST_SAMPLES}`,
  );
  return { total: counted[0]!.total, samples: rows.map(({ sample }) => sample) };
}
