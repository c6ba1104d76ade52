import pg from "pg";
import { type Catalog, exposedTables } from "../catalog/catalog.ts";
import type { CatalogTable } from "../catalog/tables.ts";
import type { StatementContext } from "../database/statement.ts";
import { quotedName } from "../pg-client/quoted-name.ts";

export const VERBS = ["select", "insert", "update", "delete"] as const;

const INSUFFICIENT_PRIVILEGE = "42501";
/** Unique, not null, foreign key, check, exclusion: looked at only after the policies. */
const CONSTRAINT_VIOLATION = /^23/;
/** Each is a subtransaction, and of more than these in one transaction others would notice. */
const BATCH_SIZE = 60;

/**
 * Tries the statements of each attempt as its role, up to the first that is not denied, and undoes each. It is one statement, for a
 * round trip for each setting of each caller takes minutes where there are many.
 */
const TRY_BLOCK = `do $try$
declare
  attempts jsonb := current_setting('content_service.attempts')::jsonb;
  results jsonb := '[]';
  result jsonb;
  attempt jsonb;
  setting jsonb;
  tried jsonb;
  sample json;
  reached bigint;
begin
  for attempt in select value from jsonb_array_elements(attempts) loop
    result := jsonb_build_object('code', '${INSUFFICIENT_PRIVILEGE}');
    for tried in select value from jsonb_array_elements(attempt -> 'statements') loop
      begin
        sample := (tried ->> 'sample')::json;
        for setting in select value from jsonb_array_elements(attempt -> 'settings') loop
          perform pg_catalog.set_config(setting ->> 0, setting ->> 1, true);
        end loop;
        perform pg_catalog.set_config('role', attempt ->> 'role', true);
        if (tried ->> 'counts')::boolean then
          execute tried ->> 'text' into reached;
        elsif sample is null then
          execute tried ->> 'text';
          get diagnostics reached = row_count;
        else
          execute tried ->> 'text' using sample;
          get diagnostics reached = row_count;
        end if;
        raise sqlstate 'UNDID';
      exception when others or assert_failure then
        result := case sqlstate when 'UNDID' then jsonb_build_object('reached', reached)
          else jsonb_build_object('code', sqlstate) end;
      end;
      exit when result ->> 'code' is distinct from '${INSUFFICIENT_PRIVILEGE}';
    end loop;
    results := results || result;
  end loop;
  perform set_config('content_service.results', results::text, true);
end $try$`;

export type PolicyMatrixRow = {
  readonly table: CatalogTable;
  readonly verb: TableVerb;
  /** How many rows there are; null where the owner cannot tell: a materialized view has no data yet, a foreign server is away. */
  readonly total: number | null;
  /** In the order of the contexts. */
  readonly outcomes: readonly AttemptOutcome[];
};

type PolicyMatrixDependencies = {
  readonly catalog: Catalog;
  /** Of everybody who could ask. */
  readonly contexts: readonly StatementContext[];
  /** As the login of requests. */
  readonly login: pg.ClientBase;
  /** As the owner, who sees every row. */
  readonly owner: pg.ClientBase;
  /** Called before each table. */
  readonly onProgress?: (done: number, of: number) => void;
};

/** A row to insert is made from one that is there: this many are tried. */
const MAX_SAMPLES = 5;

/** What each asker reaches of each exposed table, by trying it; everything is undone. */
export async function readPolicyMatrix({
  catalog,
  contexts,
  login,
  owner,
  onProgress,
}: PolicyMatrixDependencies): Promise<PolicyMatrixRow[]> {
  const rows: PolicyMatrixRow[] = [];
  const tables = exposedTables(catalog);
  for (const [index, table] of tables.entries()) {
    onProgress?.(index, tables.length);
    const { total, samples } = await readSamples(quotedName(table.schema, table.name), owner);
    const attempts = VERBS.flatMap((verb) => contexts.map((context) => ({ verb, table, context })));
    const outcomes = await runAttempts(attempts, { client: login, catalog, samples });
    for (const [at, verb] of VERBS.entries()) {
      const ofVerb = outcomes.slice(at * contexts.length, (at + 1) * contexts.length);
      rows.push({ table, verb, total, outcomes: ofVerb });
    }
  }
  return rows;
}

type TableSample = { readonly total: number | null; readonly samples: readonly string[] };

async function readSamples(name: string, owner: pg.ClientBase): Promise<TableSample> {
  try {
    const { rows } = await owner.query<{ total: number; samples: string[] }>(
      `select (select count(*)::float8 from ${name}) as total,
        array(select to_json(t)::text from ${name} as t limit ${MAX_SAMPLES}) as samples`,
    );
    return rows[0]!;
  } catch (error) {
    if (!(error instanceof pg.DatabaseError)) throw error;
    return { total: null, samples: [] };
  }
}

type TableVerb = (typeof VERBS)[number];

export type AttemptOutcome =
  /** So many rows were reached. */
  | { readonly kind: "rows"; readonly count: number }
  /** Privileges and policies let it pass; what they do not judge may have stopped it. */
  | { readonly kind: "allowed" }
  | { readonly kind: "denied" }
  /** A trigger or the database itself refused, in words of its own. */
  | { readonly kind: "failed"; readonly code: string };

type AccessAttempt = {
  readonly verb: TableVerb;
  readonly table: CatalogTable;
  readonly context: StatementContext;
};

type AttemptDependencies = {
  /** As the login of requests, outside any transaction. */
  readonly client: pg.ClientBase;
  readonly catalog: Catalog;
  /** Rows of the table that are there, as JSON, from which one to insert is made. */
  readonly samples: readonly string[];
};

type TriedStatement = {
  readonly text: string;
  /** Whether it tells how many rows there are, instead of reaching them. */
  readonly counts?: boolean;
  readonly sample?: string;
};

type AttemptResult = { readonly reached: number } | { readonly code: string };

/** Really does each as somebody, and undoes it. */
async function runAttempts(
  attempts: readonly AccessAttempt[],
  dependencies: AttemptDependencies,
): Promise<AttemptOutcome[]> {
  const outcomes: AttemptOutcome[] = [];
  for (let first = 0; first < attempts.length; first += BATCH_SIZE) {
    const batch = attempts.slice(first, first + BATCH_SIZE);
    const results = await runBatch(batch, dependencies);
    outcomes.push(...results.map((result, index) => toOutcome(result, batch[index]!.verb)));
  }
  return outcomes;
}

async function runBatch(
  attempts: readonly AccessAttempt[],
  dependencies: AttemptDependencies,
): Promise<AttemptResult[]> {
  const { client } = dependencies;
  const input = attempts.map((attempt) => {
    const { role, settings } = attempt.context;
    return { role, settings, statements: statementsFor(attempt, dependencies) };
  });
  // The login's own time limit is for a single statement of a caller.
  await client.query("begin; set local statement_timeout = 0");
  try {
    await client.query("select set_config('content_service.attempts', $1, true)", [JSON.stringify(input)]);
    await client.query(TRY_BLOCK);
    const { rows } = await client.query<{ results: AttemptResult[] }>(
      "select current_setting('content_service.results')::json as results",
    );
    return rows[0]!.results;
  } finally {
    await client.query("rollback");
  }
}

function toOutcome(result: AttemptResult, verb: TableVerb): AttemptOutcome {
  if ("code" in result) {
    const { code } = result;
    if (code === INSUFFICIENT_PRIVILEGE) return { kind: "denied" };
    return CONSTRAINT_VIOLATION.test(code) ? { kind: "allowed" } : { kind: "failed", code };
  }
  // What was inserted is one row or none.
  return verb === "insert" ? { kind: "allowed" } : { kind: "rows", count: result.reached };
}

/** From the most harmless on; the first that is not denied counts. None: there is no privilege to try. */
function statementsFor(
  { verb, table, context: { role } }: AccessAttempt,
  { catalog, samples }: AttemptDependencies,
): TriedStatement[] {
  const name = quotedName(table.schema, table.name);
  const columns = [...table.columns.values()].filter(({ generated }) => generated === null);
  const grantedFor = (privilege: "insert" | "update") =>
    columns.filter((column) => catalog.hasPrivilege(role, privilege, table, column.name));
  switch (verb) {
    case "select":
      return [{ text: `select count(*) from ${name}`, counts: true }];
    case "delete":
      return [{ text: `delete from ${name}` }];
    case "update": {
      const [column] = grantedFor("update").filter(({ identity }) => identity !== "always");
      if (!column) return [];
      const readable = catalog.hasPrivilege(role, "select", table, column.name);
      const target = quotedName(column.name);
      return [{ text: `update ${name} set ${target} = ${readable ? target : "default"}` }];
    }
    case "insert": {
      const granted = grantedFor("insert").filter(({ identity }) => identity !== "always");
      if (granted.length === 0) return [];
      const columnList = granted.map((column) => quotedName(column.name)).join(", ");
      const copy = `insert into ${name} (${columnList}) select ${columnList} from json_populate_record(null::${name}, $1)`;
      return [{ text: `insert into ${name} default values` }, ...samples.map((sample) => ({ text: copy, sample }))];
    }
  }
}
