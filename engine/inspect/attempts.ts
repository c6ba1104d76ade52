import type pg from "pg";
import type { Catalog } from "../catalog/catalog.ts";
import type { Table } from "../catalog/tables.ts";
import type { Context } from "../database/statement.ts";
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

export type Attempt = { readonly verb: Verb; readonly table: Table; readonly context: Context };

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

type Result = { readonly reached: number } | { readonly code: string };

const DENIED = "42501";
/** Unique, not null, foreign key, check, exclusion: looked at only after the policies. */
const CONSTRAINT = /^23/;
/** Each is a subtransaction, and of more than these in one transaction others would notice. */
const MOST_AT_ONCE = 60;

/**
 * Tries the statements of each attempt as its role, up to the first that is not denied, and undoes each. It is one statement, for a
 * round trip for each setting of each caller takes minutes where there are many.
 */
const TRY = `do $try$
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
    result := jsonb_build_object('code', '${DENIED}');
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
      exit when result ->> 'code' is distinct from '${DENIED}';
    end loop;
    results := results || result;
  end loop;
  perform set_config('content_service.results', results::text, true);
end $try$`;

/** Really does each as somebody, and undoes it. */
export async function tryAll(attempts: readonly Attempt[], means: AttemptDependencies): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  for (let first = 0; first < attempts.length; first += MOST_AT_ONCE) {
    const batch = attempts.slice(first, first + MOST_AT_ONCE);
    const results = await tryBatch(batch, means);
    outcomes.push(...results.map((result, index) => toOutcome(result, batch[index]!.verb)));
  }
  return outcomes;
}

async function tryBatch(attempts: readonly Attempt[], means: AttemptDependencies): Promise<Result[]> {
  const { client } = means;
  const asked = attempts.map((attempt) => {
    const { role, settings } = attempt.context;
    return { role, settings, statements: statementsFor(attempt, means) };
  });
  // The login's own time limit is for a single statement of a caller.
  await client.query("begin; set local statement_timeout = 0");
  try {
    await client.query("select set_config('content_service.attempts', $1, true)", [JSON.stringify(asked)]);
    await client.query(TRY);
    const { rows } = await client.query<{ results: Result[] }>(
      "select current_setting('content_service.results')::json as results",
    );
    return rows[0]!.results;
  } finally {
    await client.query("rollback");
  }
}

function toOutcome(result: Result, verb: Verb): Outcome {
  if ("code" in result) {
    const { code } = result;
    if (code === DENIED) return { kind: "denied" };
    return CONSTRAINT.test(code) ? { kind: "allowed" } : { kind: "failed", code };
  }
  // What was inserted is one row or none.
  return verb === "insert" ? { kind: "allowed" } : { kind: "rows", count: result.reached };
}

/** From the most harmless on; the first that is not denied counts. None: there is no privilege to try. */
function statementsFor(
  { verb, table, context: { role } }: Attempt,
  { catalog, samples }: AttemptDependencies,
): TriedStatement[] {
  const name = quotedName(table.schema, table.name);
  const columns = [...table.columns.values()].filter(({ generated }) => generated === null);
  const grantedFor = (privilege: "insert" | "update") =>
    columns.filter((column) => catalog.mayRole(role, privilege, table, column.name));
  switch (verb) {
    case "select":
      return [{ text: `select count(*) from ${name}`, counts: true }];
    case "delete":
      return [{ text: `delete from ${name}` }];
    case "update": {
      const [column] = grantedFor("update").filter(({ identity }) => identity !== "always");
      if (!column) return [];
      const readable = catalog.mayRole(role, "select", table, column.name);
      const target = quotedName(column.name);
      return [{ text: `update ${name} set ${target} = ${readable ? target : "default"}` }];
    }
    case "insert": {
      const granted = grantedFor("insert").filter(({ identity }) => identity !== "always");
      if (granted.length === 0) return [];
      const list = granted.map((column) => quotedName(column.name)).join(", ");
      const copy = `insert into ${name} (${list}) select ${list} from json_populate_record(null::${name}, $1)`;
      return [{ text: `insert into ${name} default values` }, ...samples.map((sample) => ({ text: copy, sample }))];
    }
  }
}
