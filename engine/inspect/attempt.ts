import pg from "pg";
import type { Catalog } from "../catalog/catalog.ts";
import type { Table } from "../catalog/tables.ts";
import type { Context, Statement } from "../database/statement.ts";
import { quotedName } from "../quoted-name.ts";

export const VERBS = ["select", "insert", "update", "delete"] as const;
export type Verb = (typeof VERBS)[number];

export type Outcome =
  /** So many rows were reached. */
  | { readonly kind: "rows"; readonly count: number }
  /** Privileges and policies let it pass; what they do not judge may have stopped it. */
  | { readonly kind: "allowed" }
  | { readonly kind: "denied" }
  /** A trigger or the database itself refused, in words of its own. */
  | { readonly kind: "failed"; readonly code: string };

type Surroundings = {
  /** As the login of requests, outside any transaction. */
  readonly client: pg.ClientBase;
  readonly catalog: Catalog;
  /** Rows that are there, as JSON, from which one to insert is made. */
  readonly samples: readonly string[];
};

const DENIED = "42501";
/** Unique, not null, foreign key, check, exclusion: looked at only after the policies. */
const CONSTRAINT = /^23/;

/** Really does it as somebody, and undoes it. */
export async function attempt(
  verb: Verb,
  table: Table,
  context: Context,
  surroundings: Surroundings,
): Promise<Outcome> {
  let outcome: Outcome = { kind: "denied" };
  for (const statement of statementsFor(verb, table, context.role, surroundings)) {
    outcome = await tryOut(statement, context, surroundings.client);
    if (outcome.kind !== "denied") break;
  }
  // What was inserted is one row or none.
  return verb === "insert" && outcome.kind === "rows" ? { kind: "allowed" } : outcome;
}

/** From the most harmless on; the first that is not denied counts. None: there is no privilege to try. */
function statementsFor(verb: Verb, table: Table, role: string, { catalog, samples }: Surroundings): Statement[] {
  const name = quotedName(table.schema, table.name);
  const columns = [...table.columns.values()].filter(({ generated }) => generated === null);
  const grantedFor = (privilege: "insert" | "update") =>
    columns.filter((column) => catalog.mayRole(role, privilege, table, column.name));
  switch (verb) {
    case "select":
      return [{ text: `select count(*)::int as count from ${name}`, values: [] }];
    case "delete":
      return [{ text: `delete from ${name}`, values: [] }];
    case "update": {
      const [column] = grantedFor("update").filter(({ identity }) => identity !== "always");
      if (!column) return [];
      const readable = catalog.mayRole(role, "select", table, column.name);
      const target = quotedName(column.name);
      return [{ text: `update ${name} set ${target} = ${readable ? target : "default"}`, values: [] }];
    }
    case "insert": {
      const granted = grantedFor("insert").filter(({ identity }) => identity !== "always");
      if (granted.length === 0) return [];
      const list = granted.map((column) => quotedName(column.name)).join(", ");
      const copy = `insert into ${name} (${list}) select ${list} from json_populate_record(null::${name}, $1)`;
      return [
        { text: `insert into ${name} default values`, values: [] },
        ...samples.map((sample) => ({ text: copy, values: [sample] })),
      ];
    }
  }
}

async function tryOut({ text, values }: Statement, context: Context, client: pg.ClientBase): Promise<Outcome> {
  await client.query("begin");
  try {
    for (const [name, value] of context.settings) await client.query("select set_config($1, $2, true)", [name, value]);
    await client.query(`set local role ${quotedName(context.role)}`);
    const { rows, rowCount } = await client.query<{ count?: number }>(text, [...values]);
    return { kind: "rows", count: rows[0]?.count ?? rowCount ?? 0 };
  } catch (error) {
    return refusal(error);
  } finally {
    await client.query("rollback");
  }
}

function refusal(error: unknown): Outcome {
  if (!(error instanceof pg.DatabaseError)) throw error;
  const code = error.code ?? "";
  if (code === DENIED) return { kind: "denied" };
  return CONSTRAINT.test(code) ? { kind: "allowed" } : { kind: "failed", code };
}
