import type { SchemaStatement } from "./dump-schema.ts";

export const CREATE_TABLE = /^create (?:unlogged )?table /;
const NAME_PATTERN = '(?:"(?:[^"]|"")+"|[^\\s".(,]+)';
const QUALIFIED_PATTERN = `${NAME_PATTERN}(?:\\.${NAME_PATTERN})*`;

/** `title text default 'x'::text not null`. */
const COLUMN_PATTERN = new RegExp(`^(${NAME_PATTERN}) (.+?)(?: default (.+?))?( not null)?$`);
/** A generated column, which can only be dropped and added again. */
const COMPUTED_COLUMN = / generated always as \(/;
const IDENTITY_COLUMN = / generated (always|by default) as identity/;

/** The patterns of the dump's statements, with the name of the created object and the SQL that removes it. */
const STATEMENT_PATTERNS: readonly [RegExp, (match: RegExpExecArray, object: string) => DescribedObject][] = [
  [
    new RegExp(`^CREATE (?:UNIQUE )?INDEX (${NAME_PATTERN}) ON (?:ONLY )?(${NAME_PATTERN})\\.`),
    ([, index, schema], object) => ({ name: `index ${index} of ${object}`, remove: `drop index ${schema}.${index};` }),
  ],
  [
    new RegExp(`^CREATE (?:CONSTRAINT )?TRIGGER (${NAME_PATTERN}) [\\s\\S]*? ON (${QUALIFIED_PATTERN})`),
    ([, trigger, table], object) => ({
      name: `trigger ${trigger} of ${object}`,
      remove: `drop trigger ${trigger} on ${table};`,
    }),
  ],
  [
    new RegExp(`^create policy (${NAME_PATTERN}) on (${QUALIFIED_PATTERN})`),
    ([, policy, table], object) => ({
      name: `policy ${policy} of ${object}`,
      remove: `drop policy ${policy} on ${table};`,
    }),
  ],
  [
    /^(alter table .+) (enable|force) row level security$/,
    ([, alter, verb], object) => ({
      name: `row-level security (${verb}) of ${object}`,
      remove: `${alter} ${verb === "enable" ? "disable" : "no force"} row level security;`,
    }),
  ],
  [
    /^(alter table .+ replica identity) \w+$/,
    ([, alter], object) => ({ name: `the replica identity of ${object}`, remove: `${alter} default;` }),
  ],
  [
    /^grant (.+?) to (.+?)( with grant option)?$/,
    ([statement, privilege, role]) => ({ name: statement!, remove: `revoke ${privilege} from ${role};` }),
  ],
  [
    /^(alter default privileges.*) grant (.+) to (.+)$/,
    ([statement, alter, privilege, role]) => ({
      name: statement!,
      remove: `${alter} revoke ${privilege} from ${role};`,
    }),
  ],
  [
    /^(alter default privileges.*) revoke (.+) from (.+)$/,
    ([statement, alter, privilege, role]) => ({
      name: statement!,
      remove: `${alter} grant ${privilege} to ${role};`,
    }),
  ],
  [/^(comment on .+?) is '/, ([, comment]) => ({ name: `the ${comment}`, remove: `${comment} is null;` })],
];

/** A difference between a database and its migrations. */
export type SchemaDifference = {
  /** `index notes_text of table public.notes`. */
  readonly name: string;
  /** `table public.notes` */
  readonly object: string;
  /** `index notes_text of table public.notes is not created by a migration`. */
  readonly description: string;
  /** SQL for the next migration, which keeps the difference. */
  readonly keepSql: string;
  /** SQL that reverts the database to what the migrations create. */
  readonly undoSql: string;
  /** SQL for cases where `undoSql` fails, because a replacement cannot change types or remove columns. */
  readonly recreateSql?: string;
};

export type DumpedSchema = {
  readonly statements: readonly SchemaStatement[];
  /** Columns and constraints of tables. */
  readonly tableLines: readonly SchemaStatement[];
};

/** An object that exists in every schema, even without statements. */
const DEFAULT_PRIVILEGES = "default privileges";

/** Objects that exist in only one schema are reported as a whole, others statement by statement. */
export function compareSchemas(database: DumpedSchema, migrations: DumpedSchema): SchemaDifference[] {
  const here = groupByObject(database.statements);
  const there = groupByObject(migrations.statements);
  for (const objects of [here, there]) if (!objects.has(DEFAULT_PRIVILEGES)) objects.set(DEFAULT_PRIVILEGES, []);
  const differences: SchemaDifference[] = [];
  for (const [object, statements] of here) {
    if (there.has(object)) continue;
    differences.push({
      name: object,
      object,
      description: `${object} is not created by a migration`,
      keepSql: joinStatements(statements),
      undoSql: `drop ${object};`,
    });
  }
  for (const [object, statements] of there) {
    if (here.has(object)) continue;
    differences.push({
      name: object,
      object,
      description: `${object} is missing`,
      keepSql: `drop ${object};`,
      undoSql: joinStatements(statements),
    });
  }
  const common = [...here.keys()].filter((object) => there.has(object));
  for (const object of common) {
    // Tables are compared line by line below.
    const rest = (statements: readonly string[]) => statements.filter((statement) => !CREATE_TABLE.test(statement));
    differences.push(...compareStatements(object, rest(here.get(object)!), rest(there.get(object)!)));
  }
  const linesHere = groupByObject(database.tableLines);
  const linesThere = groupByObject(migrations.tableLines);
  for (const object of common) {
    differences.push(...compareTableLines(object, linesHere.get(object) ?? [], linesThere.get(object) ?? []));
  }
  return differences;
}

function compareStatements(object: string, here: readonly string[], there: readonly string[]): SchemaDifference[] {
  const added = here.filter((statement) => !there.includes(statement));
  const missing = there.filter((statement) => !here.includes(statement));
  const differences: SchemaDifference[] = [];
  for (const statement of added) {
    const { name, remove } = describeStatement(object, statement);
    const other = missing.find((candidate) => describeStatement(object, candidate).name === name);
    if (other === undefined) {
      differences.push({
        name,
        object,
        description: `${name} is not created by a migration`,
        keepSql: `${statement};`,
        undoSql: remove,
      });
      continue;
    }
    missing.splice(missing.indexOf(other), 1);
    const recreate = (wanted: string) => `${remove}\n${wanted};`;
    const replace = (wanted: string) => toReplacement(wanted) ?? recreate(wanted);
    differences.push({
      name,
      object,
      description: `${name} differs from the migrations`,
      keepSql: replace(statement),
      undoSql: replace(other),
      recreateSql: recreate(other),
    });
  }
  for (const statement of missing) {
    const { name, remove } = describeStatement(object, statement);
    differences.push({ name, object, description: `${name} is missing`, keepSql: remove, undoSql: `${statement};` });
  }
  return differences;
}

/** Compares columns and constraints. */
function compareTableLines(object: string, here: readonly string[], there: readonly string[]): SchemaDifference[] {
  const table = object.replace(/^(foreign )?table /, "");
  const added = here.filter((line) => !there.includes(line));
  const missing = there.filter((line) => !here.includes(line));
  const differences: SchemaDifference[] = [];
  for (const line of added) {
    const { name, add, remove } = describeTableLine(table, line);
    const other = missing.find((candidate) => describeTableLine(table, candidate).name === name);
    if (other === undefined) {
      differences.push({
        name,
        object,
        description: `${name} is not created by a migration`,
        keepSql: add,
        undoSql: remove,
      });
      continue;
    }
    missing.splice(missing.indexOf(other), 1);
    const change = (from: string, to: string) =>
      isConstraint(to) ? `${remove}\n${describeTableLine(table, to).add}` : alterColumn(table, from, to);
    differences.push({
      name,
      object,
      description: `${name} differs from the migrations: ${line} instead of ${other}`,
      keepSql: change(other, line),
      undoSql: change(line, other),
    });
  }
  for (const line of missing) {
    const { name, add, remove } = describeTableLine(table, line);
    differences.push({ name, object, description: `${name} is missing`, keepSql: remove, undoSql: add });
  }
  return differences;
}

function describeTableLine(
  table: string,
  line: string,
): { readonly name: string; readonly add: string; readonly remove: string } {
  const [, constraint] = new RegExp(`^constraint (${NAME_PATTERN}) `).exec(line) ?? [];
  if (constraint !== undefined) {
    return {
      name: `constraint ${constraint} of table ${table}`,
      add: `alter table ${table} add ${line};`,
      remove: `alter table ${table} drop constraint ${constraint};`,
    };
  }
  const [column = ""] = new RegExp(`^${NAME_PATTERN}`).exec(line) ?? [];
  return {
    name: `column ${column} of table ${table}`,
    add: `alter table ${table} add column ${line};`,
    remove: `alter table ${table} drop column ${column};`,
  };
}

function isConstraint(line: string): boolean {
  return line.startsWith("constraint ");
}

function alterColumn(table: string, from: string, to: string): string {
  if (COMPUTED_COLUMN.test(from) || COMPUTED_COLUMN.test(to))
    return `${describeTableLine(table, from).remove}\n${describeTableLine(table, to).add}`;
  const before = readColumn(from);
  const after = readColumn(to);
  const { type, fallback, notNull, identity } = after;
  const changesType = type !== before.type;
  const dropsDefault = before.fallback !== undefined && (changesType || fallback === undefined);
  const actions = [
    ...(before.identity !== undefined && identity === undefined ? ["drop identity"] : []),
    // The default is dropped first: it may have no cast to the type.
    ...(dropsDefault ? ["drop default"] : []),
    ...(changesType ? [`type ${type} using ${after.name}::${type}`] : []),
    ...(fallback !== undefined && (changesType || fallback !== before.fallback) ? [`set default ${fallback}`] : []),
    ...(notNull === before.notNull ? [] : [notNull ? "set not null" : "drop not null"]),
    ...(identity === undefined || identity === before.identity
      ? []
      : [before.identity === undefined ? `add generated ${identity} as identity` : `set generated ${identity}`]),
  ];
  return `alter table ${table} ${actions.map((action) => `alter column ${after.name} ${action}`).join(", ")};`;
}

function readColumn(line: string) {
  const [, identity] = IDENTITY_COLUMN.exec(line) ?? [];
  const [, name = "", type, fallback, notNull] = COLUMN_PATTERN.exec(line.replace(IDENTITY_COLUMN, "")) ?? [];
  return { name, type, fallback, notNull, identity };
}

type DescribedObject = { readonly name: string; readonly remove: string };

function describeStatement(object: string, statement: string): DescribedObject {
  for (const [form, describeMatch] of STATEMENT_PATTERNS) {
    const match = form.exec(statement);
    if (match) return describeMatch(match, object);
  }
  return { name: object, remove: `drop ${object};` };
}

/** A statement that replaces an object and keeps its grants; null if there is none. */
function toReplacement(statement: string): string | null {
  if (statement.startsWith("create view ")) return `${statement.replace("create view", "create or replace view")};`;
  if (statement.startsWith("create sequence ")) return `${statement.replace("create", "alter")};`;
  return /^(CREATE OR REPLACE|comment on|alter table) /.test(statement) ? `${statement};` : null;
}

export function groupByObject(statements: readonly SchemaStatement[]): Map<string, string[]> {
  const objects = new Map<string, string[]>();
  for (const { object, statement } of statements) objects.set(object, [...(objects.get(object) ?? []), statement]);
  return objects;
}

function joinStatements(statements: readonly string[]): string {
  return statements.map((statement) => `${statement};`).join("\n");
}
