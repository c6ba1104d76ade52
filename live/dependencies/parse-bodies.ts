import pg from "pg";
import { DynamicSql, type PlpgsqlBody, readPlpgsqlBody } from "./plpgsql-statements.ts";
import { UnrecognizedBody } from "./plpgsql-tokens.ts";

/** A function whose body is a text, which Postgres parses when it runs, with this search path. */
export type UnparsedFunction = {
  readonly oid: number;
  readonly path: string;
  readonly name: string;
  readonly language: string;
  readonly source: string;
  /** The parameters as the function declares them. */
  readonly parameters: string;
  readonly result: string | null;
  /** The types of all parameters, including those that return results. */
  readonly types: readonly string[];
  readonly names: readonly (string | null)[] | null;
  /** Null if it returns records, nothing, or values whose type a call decides. */
  readonly resultType: string | null;
};

/** `oid` is null if the relations that the function reads are not known. */
export type ParsedFunction = { readonly oid: number | null; readonly composesSql: boolean };

/** SQLSTATEs after which another attempt may succeed: conflicts, resources, locks, operators and systems. */
const OUTAGE = /^(?:40|53|55|57|58|XX)/;

/** Makes Postgres parse the body, in the transaction, and returns the temporary routine that has it. */
export async function parseBody(
  client: pg.ClientBase,
  unparsed: UnparsedFunction,
  routine: string,
): Promise<ParsedFunction> {
  await client.query("savepoint live_body");
  try {
    await client.query("select pg_catalog.set_config('search_path', $1, true)", [unparsed.path]);
    const isSql = unparsed.language === "sql";
    const declaration = isSql ? declareFunction(unparsed) : await declareProcedure(client, unparsed);
    // If the body has several statements, as after an `end` in it, the extended protocol refuses all of them.
    await client.query({ text: declaration, queryMode: "extended" } as pg.QueryConfig);
    // The routine is created under the function's own name, since the body may qualify its parameters with it.
    const name = pg.escapeIdentifier(unparsed.name);
    await client.query(`alter routine pg_temp.${name} rename to ${pg.escapeIdentifier(routine)}`);
    const { rows } = await client.query<{ oid: number }>(
      "select oid from pg_catalog.pg_proc where proname = $1 and pronamespace = pg_catalog.pg_my_temp_schema()",
      [routine],
    );
    return { oid: rows[0]!.oid, composesSql: false };
  } catch (error) {
    const composesSql = error instanceof DynamicSql;
    const isRefused = error instanceof pg.DatabaseError && !OUTAGE.test(error.code ?? "");
    if (!composesSql && !isRefused && !(error instanceof UnrecognizedBody)) throw error;
    await client.query("rollback to savepoint live_body");
    return { oid: null, composesSql };
  }
}

/** Declares the function with its parameters and its result, whose cast may be a function. */
function declareFunction({ name, parameters, result, source }: UnparsedFunction): string {
  const kind = result === null ? "procedure" : "function";
  const returns = result === null ? "" : ` returns ${result}`;
  return `create ${kind} pg_temp.${pg.escapeIdentifier(name)}(${parameters})${returns} language sql begin atomic ${source}\n; end`;
}

/** Declares the statements of the body. Their variables are parameters; the first ones are those that the body names by number. */
async function declareProcedure(client: pg.ClientBase, unparsed: UnparsedFunction): Promise<string> {
  const { name, source, types, names, resultType } = unparsed;
  const parameters = types.map((type, index) => ({ name: names?.[index] ?? "", type }));
  const named = parameters.filter((each) => each.name !== "");
  const body = readPlpgsqlBody(source, { parameters: named, resultType });
  const declared = [
    ...parameters.map((each) => declareParameter(each)),
    ...body.variables.filter(({ name: of }) => !named.some((each) => each.name === of)).map(declareParameter),
  ];
  const statements = [...body.queries, ...(await writeAssignments(client, body))].map((sql) => body.withRecords(sql));
  const text = statements.map((statement) => `${statement}\n;`).join(" ");
  return `create procedure pg_temp.${pg.escapeIdentifier(name)}(${declared.join(", ")}) language sql begin atomic ${text} end`;
}

function declareParameter({ name, type }: { readonly name: string; readonly type: string }): string {
  return name === "" ? type : `${pg.escapeIdentifier(name)} ${type}`;
}

/** Casts each value to the type of its variable, or all columns to the type of a row. */
async function writeAssignments(client: pg.ClientBase, { assignments }: PlpgsqlBody): Promise<string[]> {
  const written: string[] = [];
  for (const { kind, sql, types } of assignments) {
    const resolved: VariableType[] = [];
    for (const type of types) resolved.push(await resolveType(client, type));
    const [{ name, isRow }] = resolved as [VariableType];
    if (kind === "expression") written.push(`select (${sql}\n)::${name}`);
    else if (types.length === 1 && isRow) written.push(`select (row(assigned.*))::${name} from (${sql}\n) as assigned`);
    else {
      const columns = types.map((_, index) => `column${index + 1}`);
      const casts = resolved.map((each, index) => `(assigned.column${index + 1})::${each.name}`);
      written.push(`select ${casts.join(", ")} from (${sql}\n) as assigned(${columns.join(", ")})`);
    }
  }
  return written;
}

type VariableType = { readonly name: string; readonly isRow: boolean };

const COLUMN_TYPE = /^([\s\S]+?)\.\s*((?:"(?:[^"]|"")+"|[\w$\u0080-\uffff]+))\s*%\s*type$/i;

/** A cast cannot name the type of a column. */
async function resolveType(client: pg.ClientBase, type: string): Promise<VariableType> {
  const [, table, column] = COLUMN_TYPE.exec(type) ?? [];
  const { rows } =
    table === undefined
      ? await client.query<VariableType>(
          `select $1 as name, coalesce((select typtype operator(pg_catalog.=) 'c' from pg_catalog.pg_type where oid = pg_catalog.to_regtype($1)), false) as "isRow"`,
          [type],
        )
      : await client.query<VariableType>(
          `select pg_catalog.format_type(a.atttypid, a.atttypmod) as name, t.typtype operator(pg_catalog.=) 'c' as "isRow"
           from pg_catalog.pg_attribute a join pg_catalog.pg_type t on t.oid = a.atttypid
           where a.attrelid = pg_catalog.to_regclass($1) and a.attname = (pg_catalog.parse_ident($2))[1]`,
          [table, column],
        );
  if (!rows[0]) throw new UnrecognizedBody();
  return rows[0];
}
