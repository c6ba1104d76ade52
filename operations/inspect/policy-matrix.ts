import pg from "pg";
import { type Catalog, type CatalogTable, exposedTables } from "#catalog";
import { makeCallerStatements, quotedName } from "#postgres/client";
import type { StatementContext } from "#postgres/statement";

export const VERBS = ["select", "insert", "update", "delete"] as const;

const INSUFFICIENT_PRIVILEGE = "42501";
const QUERY_CANCELED = "57014";
/** The lock timeout: a longer wait for a locked table would block other sessions. */
const LOCK_TIMEOUT_MS = 1_000;
/** SQLSTATE class of integrity constraints, which Postgres checks after the policies. */
const CONSTRAINT_VIOLATION = /^23/;
/** The attempts per transaction. Each is a subtransaction; more than 64 in one transaction would slow down other sessions. */
const BATCH_SIZE = 60;

/**
 * Runs the statements of each attempt with its role until one is not denied, and rolls each back. One statement runs all attempts, because a
 * round trip per setting and caller would take minutes.
 */
const TRY_BLOCK = `do $try$
declare
  attempts pg_catalog.jsonb := pg_catalog.current_setting('content_service.attempts')::pg_catalog.jsonb;
  results pg_catalog.jsonb := '[]';
  result pg_catalog.jsonb;
  attempt pg_catalog.jsonb;
  setting pg_catalog.text;
  tried pg_catalog.jsonb;
  sample pg_catalog.json;
  reached bigint;
begin
  for attempt in select value from pg_catalog.jsonb_array_elements(attempts) loop
    result := pg_catalog.jsonb_build_object('code', '${INSUFFICIENT_PRIVILEGE}');
    for tried in select value from pg_catalog.jsonb_array_elements(attempt operator(pg_catalog.->) 'statements') loop
      begin
        sample := (tried operator(pg_catalog.->>) 'sample')::pg_catalog.json;
        for setting in select value from pg_catalog.jsonb_array_elements_text(attempt operator(pg_catalog.->) 'settings') loop
          execute setting;
        end loop;
        if (tried operator(pg_catalog.->>) 'counts')::boolean then
          execute tried operator(pg_catalog.->>) 'text' into reached;
        elsif sample is null then
          execute tried operator(pg_catalog.->>) 'text';
          get diagnostics reached = row_count;
          if (tried operator(pg_catalog.->>) 'copies')::boolean and reached operator(pg_catalog.=) 0 then
            raise insufficient_privilege;
          end if;
        else
          execute tried operator(pg_catalog.->>) 'text' using sample;
          get diagnostics reached = row_count;
        end if;
        raise sqlstate 'UNDID';
      exception when others or assert_failure then
        result := case sqlstate when 'UNDID' then pg_catalog.jsonb_build_object('reached', reached)
          else pg_catalog.jsonb_build_object('code', sqlstate) end;
      end;
      exit when coalesce(result operator(pg_catalog.->>) 'code', '') operator(pg_catalog.<>) '${INSUFFICIENT_PRIVILEGE}';
    end loop;
    results := results operator(pg_catalog.||) result;
  end loop;
  perform pg_catalog.set_config('content_service.results', results::pg_catalog.text, true);
end $try$`;

export type PolicyMatrixRow = {
  readonly table: CatalogTable;
  readonly verb: MatrixVerb;
  /** Number of rows; null if it cannot be read: an unpopulated materialized view, an unreachable foreign server. */
  readonly total: number | null;
  /** The outcomes in the order of the contexts. */
  readonly outcomes: readonly AttemptOutcome[];
};

type PolicyMatrixDependencies = {
  /** The tables to try; without them, all exposed ones. */
  readonly tables?: readonly CatalogTable[];
  readonly catalog: Catalog;
  /** The roles and claims to test. */
  readonly contexts: readonly StatementContext[];
  /** A connection with the login role of requests. */
  readonly login: pg.ClientBase;
  /** A connection as the owner, who sees every row. */
  readonly owner: pg.ClientBase;
  /** The timeout for all contexts of a command together; 0 disables it. */
  readonly timeoutMs?: number;
  /** Called before each table. */
  readonly onProgress?: (done: number, of: number) => void;
};

/** Inserts are tried with copies of this many existing rows. */
const MAX_SAMPLES = 5;

/** Tests each command on each exposed table in each context, and rolls everything back. */
export async function readPolicyMatrix(dependencies: PolicyMatrixDependencies): Promise<PolicyMatrixRow[]> {
  const rows: PolicyMatrixRow[] = [];
  const { tables = exposedTables(dependencies.catalog) } = dependencies;
  for (const [index, table] of tables.entries()) {
    dependencies.onProgress?.(index, tables.length);
    rows.push(...(await readTableMatrix(table, dependencies)));
  }
  return rows;
}

/** Predefined roles of Postgres, which tokens should not name. */
const PREDEFINED_ROLE = /^pg_/;

/** All roles that callers can have, the anonymous role first. */
export function listRequestRoles(
  { roles }: Pick<Catalog, "roles">,
  { anonRole, loginRole }: { readonly anonRole: string; readonly loginRole: string },
): readonly string[] {
  const others = [...roles.keys()].filter(
    (name) => ![anonRole, loginRole].includes(name) && !PREDEFINED_ROLE.test(name),
  );
  return [anonRole, ...others];
}

/** The part of the matrix for one table. Commands that take longer than the timeout fail with 57014 for all contexts. */
export async function readTableMatrix(
  table: CatalogTable,
  { catalog, contexts, login, owner, timeoutMs = 0 }: PolicyMatrixDependencies,
): Promise<PolicyMatrixRow[]> {
  const { total, samples } = await readSamples(quotedName(table.schema, table.name), owner);
  const dependencies = { client: login, catalog, samples, timeoutMs };
  const attemptsOf = (verb: MatrixVerb) => contexts.map((context) => ({ verb, table, context }));
  if (timeoutMs === 0) {
    const outcomes = await runAttempts(VERBS.flatMap(attemptsOf), dependencies);
    return VERBS.map((verb, at) => {
      return { table, verb, total, outcomes: outcomes.slice(at * contexts.length, (at + 1) * contexts.length) };
    });
  }
  const rows: PolicyMatrixRow[] = [];
  for (const verb of VERBS) {
    const outcomes = await runAttempts(attemptsOf(verb), dependencies).catch((error: unknown): AttemptOutcome[] => {
      if (!(error instanceof pg.DatabaseError) || error.code !== QUERY_CANCELED) throw error;
      return contexts.map(() => ({ kind: "failed", code: QUERY_CANCELED }));
    });
    rows.push({ table, verb, total, outcomes });
  }
  return rows;
}

type TableSample = { readonly total: number | null; readonly samples: readonly string[] };

async function readSamples(name: string, owner: pg.ClientBase): Promise<TableSample> {
  try {
    const { rows } = await owner.query<{ total: number; samples: string[] }>(
      `select (select pg_catalog.count(*)::pg_catalog.float8 from ${name}) as total,
        array(select pg_catalog.to_json(t.*)::pg_catalog.text from ${name} as t limit ${MAX_SAMPLES}) as samples`,
    );
    return rows[0]!;
  } catch (error) {
    if (!(error instanceof pg.DatabaseError)) throw error;
    return { total: null, samples: [] };
  }
}

type MatrixVerb = (typeof VERBS)[number];

export type AttemptOutcome =
  /** The number of rows that the statement read or changed. */
  | { readonly kind: "rows"; readonly count: number }
  /** Privileges and policies allow the command; a constraint may still have rejected the row. */
  | { readonly kind: "allowed" }
  | { readonly kind: "denied" }
  /** Another error, for example of a trigger. */
  | { readonly kind: "failed"; readonly code: string };

type AccessAttempt = {
  readonly verb: MatrixVerb;
  readonly table: CatalogTable;
  readonly context: StatementContext;
};

type AttemptDependencies = {
  /** A connection with the login role of requests, outside a transaction. */
  readonly client: pg.ClientBase;
  readonly catalog: Catalog;
  /** Existing rows as JSON; inserts are made from them. */
  readonly samples: readonly string[];
  readonly timeoutMs: number;
};

type TriedStatement = {
  readonly text: string;
  /** True if the statement's result is a count of rows. */
  readonly counts?: boolean;
  /** True if the statement copies a row that the role sees; without one it says nothing. */
  readonly copies?: boolean;
  readonly sample?: string;
};

type AttemptResult = { readonly reached: number } | { readonly code: string };

/** Runs each attempt with its role, and rolls it back. */
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
  const { client, timeoutMs } = dependencies;
  const input = attempts.map((attempt) => {
    const { role, settings } = attempt.context;
    const statements = makeCallerStatements([...settings, ["role", role]]);
    return { settings: statements, statements: statementsFor(attempt, dependencies) };
  });
  const lockTimeout = timeoutMs === 0 ? "" : `; set local lock_timeout = ${LOCK_TIMEOUT_MS}`;
  // The login role's statement_timeout is meant for single statements.
  await client.query(`begin; set local statement_timeout = ${timeoutMs}${lockTimeout}`);
  try {
    await client.query("select pg_catalog.set_config('content_service.attempts', $1, true)", [JSON.stringify(input)]);
    await client.query(TRY_BLOCK);
    const { rows } = await client.query<{ results: AttemptResult[] }>(
      "select pg_catalog.current_setting('content_service.results')::pg_catalog.json as results",
    );
    return rows[0]!.results;
  } finally {
    await client.query("rollback");
  }
}

function toOutcome(result: AttemptResult, verb: MatrixVerb): AttemptOutcome {
  if ("code" in result) {
    const { code } = result;
    if (code === INSUFFICIENT_PRIVILEGE) return { kind: "denied" };
    return CONSTRAINT_VIOLATION.test(code) ? { kind: "allowed" } : { kind: "failed", code };
  }
  // An insert affects one row at most.
  return verb === "insert" ? { kind: "allowed" } : { kind: "rows", count: result.reached };
}

/** Returns the least intrusive statement first; the first that is not denied counts. Empty if the role lacks the privilege. */
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
      return [{ text: `select pg_catalog.count(*) from ${name}`, counts: true }];
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
      const copy = `insert into ${name} (${columnList}) select ${columnList} from pg_catalog.json_populate_record(null::${name}, $1)`;
      return [
        { text: `insert into ${name} default values` },
        // A row of the caller's own may be allowed where those of others are not.
        { text: `insert into ${name} (${columnList}) select ${columnList} from ${name} limit 1`, copies: true },
        ...samples.map((sample) => ({ text: copy, sample })),
      ];
    }
  }
}
