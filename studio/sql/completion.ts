import type { Completion, CompletionSource } from "@codemirror/autocomplete";
import type { DatabaseDescription, DescribedTable } from "../api/catalog.ts";
import type { SqlCompletion } from "../components/code-mirror.ts";
import { identifier } from "../sql-text.ts";

type CompletedCatalog = Pick<DatabaseDescription, "tables" | "functions" | "schemas">;

const DEFAULT_SCHEMA = "public";
const NAME = '(?:"(?:[^"]|"")+"|[\\w$]+)';
/** Matches the tables of a statement: `from films f`, `people`, `join x.y`, `update z`, `into z`. */
const TABLE_REFERENCE = new RegExp(
  `(?:\\b(?:from|join|update|into|using)\\b|,)\\s*(${NAME}(?:\\s*\\.\\s*${NAME})?)`,
  "gi",
);

/** Suggests names of the catalogue: tables by schema, columns by table or alias, functions. The language suggests keywords. */
export function makeCompletion(catalog: CompletedCatalog): SqlCompletion {
  return { tables: tablesBySchema(catalog), defaultSchema: DEFAULT_SCHEMA, source: completionSource(catalog) };
}

function tablesBySchema({ tables }: CompletedCatalog): SqlCompletion["tables"] {
  const bySchema = Object.groupBy(tables, ({ schema }) => schema);
  return Object.fromEntries(
    Object.entries(bySchema).map(([schema, all]) => [
      schema,
      Object.fromEntries(all!.map((table) => [table.name, table.columns.map(toColumn)])),
    ]),
  );
}

function completionSource(catalog: CompletedCatalog): CompletionSource {
  const functions = functionCompletions(catalog);
  return (context) => {
    const word = context.matchBefore(/[\w$]+/);
    const from = word?.from ?? context.pos;
    const before = context.state.sliceDoc(Math.max(0, from - 1), from);
    // The language itself suggests names after a dot.
    if ((!word && !context.explicit) || before === "." || before === "'") return null;
    const statement = statementAround(context.state.doc.toString(), context.pos);
    return { from, options: [...columnCompletions(catalog, statement), ...functions], validFor: /^[\w$]*$/ };
  };
}

/** Returns the columns of all tables that the statement names. */
export function columnCompletions(catalog: CompletedCatalog, statement: string): Completion[] {
  const columns = namedTables(catalog, statement).flatMap((table) =>
    table.columns.map((column) => ({ ...toColumn(column), detail: `${column.type} · ${table.name}`, boost: 2 })),
  );
  return [...new Map(columns.map((column) => [`${column.label} ${column.detail}`, column])).values()];
}

export function namedTables({ tables }: CompletedCatalog, statement: string): DescribedTable[] {
  return [...statement.matchAll(TABLE_REFERENCE)].flatMap(([, reference = ""]) => {
    const parts = [...reference.matchAll(new RegExp(NAME, "g"))].map(([name]) => unquote(name));
    const [schema, name] = parts.length > 1 ? [parts[0], parts[1]] : [DEFAULT_SCHEMA, parts[0]];
    return tables.filter((table) => table.schema === schema && table.name === name);
  });
}

function functionCompletions({ functions, schemas }: CompletedCatalog): Completion[] {
  const internal = new Set(schemas.filter((schema) => schema.internal).map(({ name }) => name));
  return functions
    .filter(({ schema }) => schema === "api" || !internal.has(schema))
    .map(({ schema, name, signature, returns }) => {
      const quoted = [...(schema === DEFAULT_SCHEMA ? [] : [schema]), name].map(identifier).join(".");
      return { label: `${quoted}()`, apply: `${quoted}(`, type: "function", detail: returns ?? "", info: signature };
    });
}

/** Returns the statement approximately: a semicolon within a literal ends it too. */
export function statementAround(text: string, position: number): string {
  const start = text.lastIndexOf(";", position - 1) + 1;
  const end = text.indexOf(";", position);
  return text.slice(start, end < 0 ? text.length : end);
}

function toColumn({ name, type }: DescribedTable["columns"][number]): Completion {
  return { label: name, apply: identifier(name), type: "property", detail: type };
}

function unquote(name: string): string {
  return name.startsWith('"') ? name.slice(1, -1).replaceAll('""', '"') : name.toLowerCase();
}
