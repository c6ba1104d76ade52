import type pg from "pg";
import { quotedName } from "#postgres/client";
import { INTERNAL_SCHEMAS } from "../inspect/describe-database.ts";
import type { DoctorFinding } from "./facts.ts";

/**
 * The functions with a standard body whose parameters or result are rows of a table, with their definition in parts. Without those of the
 * service on its own tables ($1: its schemas), which its migrations replace.
 */
const ROW_FUNCTIONS = `
  select namespace.nspname as schema, function.proname as name, pg_catalog.pg_get_function_identity_arguments(function.oid) as arguments,
    pg_catalog.pg_get_functiondef(function.oid) as definition, pg_catalog.pg_get_function_sqlbody(function.oid) as body,
    exists (select from pg_catalog.unnest(function.proconfig) as setting where pg_catalog.starts_with(setting, 'search_path=')) as "hasPath"
  from pg_catalog.pg_proc as function
  join pg_catalog.pg_namespace as namespace on namespace.oid = function.pronamespace
  where function.prosqlbody is not null and function.prokind in ('f', 'p')
    and namespace.nspname <> all ('{pg_catalog, information_schema}')
    and not exists (
      select from pg_catalog.pg_depend as member
      where member.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass and member.objid = function.oid and member.deptype = 'e'
    )
    and exists (
      select from pg_catalog.pg_type as used
      join pg_catalog.pg_class as relation on relation.reltype = used.oid or relation.reltype = used.typelem
      where relation.relkind in ('r', 'p')
        and not (namespace.nspname = any ($1) and relation.relnamespace = any (
          select internal.oid from pg_catalog.pg_namespace as internal where internal.nspname = any ($1)
        ))
        and relation.relnamespace <> all (array['pg_catalog'::pg_catalog.regnamespace, 'information_schema'::pg_catalog.regnamespace])
        and (used.oid = function.prorettype or used.oid = any (coalesce(function.proallargtypes, function.proargtypes::pg_catalog.oid[])))
    )
  order by 1, 2, 3`;

type RowFunction = {
  readonly schema: string;
  readonly name: string;
  readonly arguments: string;
  readonly definition: string;
  readonly body: string;
  readonly hasPath: boolean;
};

/** Finds functions because of which current releases of Postgres refuse new columns of a table (0A000). */
export async function readRowFunctionFindings(owner: pg.ClientBase): Promise<DoctorFinding[]> {
  await owner.query("begin read only");
  try {
    // Postgres prints the schema of each name that is not in pg_catalog.
    await owner.query("set local search_path = pg_catalog, pg_temp");
    const { rows } = await owner.query<RowFunction>(ROW_FUNCTIONS, [[...INTERNAL_SCHEMAS]]);
    return rows.map(toFinding);
  } finally {
    await owner.query("rollback");
  }
}

function toFinding(found: RowFunction): DoctorFinding {
  const name = `${quotedName(found.schema, found.name)}(${found.arguments})`;
  return {
    kind: "advice",
    problem:
      `${name} takes or returns rows of a table and has a standard body: ` +
      "current releases of Postgres refuse new columns of the table with a default, and generated ones (0A000).",
    fix: withStringBody(found),
  };
}

/** Returns the definition with a string body. Its names are resolved at each call, so all are qualified and the search path is fixed. */
function withStringBody({ definition, body, hasPath }: RowFunction): string {
  const head = definition.slice(0, definition.lastIndexOf(body)).trimEnd();
  const path = hasPath ? "" : "\n SET search_path TO ''";
  const statements = toStatements(body);
  const quote = dollarQuote(statements);
  return `${head}${path}\nAS ${quote}\n${statements}\n${quote};  -- callers need USAGE on the schemas that the body names`;
}

function toStatements(body: string): string {
  const text = body.trim();
  const [, expression] = /^RETURN\s+([\s\S]*)$/.exec(text) ?? [];
  if (expression !== undefined) return `SELECT ${expression};`;
  return text.replace(/^BEGIN ATOMIC\s*/, "").replace(/\s*END$/, "");
}

function dollarQuote(text: string): string {
  let quote = "$function$";
  for (let number = 1; text.includes(quote); number++) quote = `$function${number}$`;
  return quote;
}
