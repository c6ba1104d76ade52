import type { Statement } from "../schema-dump.ts";

/** Something in which a database is not what its migrations make. */
export type Difference = {
  /** `index notes_text of table public.notes is made by no migration`. */
  readonly what: string;
  /** SQL that makes the migrations agree with the database, for the next migration. */
  readonly keep: string;
  /** SQL that makes the database agree with the migrations. */
  readonly undo: string;
};

export type Schema = {
  readonly statements: readonly Statement[];
  /** Columns and constraints of tables. */
  readonly lines: readonly Statement[];
};

const TABLE = /^create (?:unlogged )?table /;
const NAME = '(?:"(?:[^"]|"")+"|[^\\s".(,]+)';
const QUALIFIED = `${NAME}(?:\\.${NAME})*`;

/** Objects that only one of the two has are told as a whole, others statement by statement. */
export function differencesOf(database: Schema, migrations: Schema): Difference[] {
  const here = byObject(database.statements);
  const there = byObject(migrations.statements);
  const differences: Difference[] = [];
  for (const [object, statements] of here) {
    if (there.has(object)) continue;
    differences.push({ what: `${object} is made by no migration`, keep: script(statements), undo: `drop ${object};` });
  }
  for (const [object, statements] of there) {
    if (here.has(object)) continue;
    differences.push({ what: `${object} is missing`, keep: `drop ${object};`, undo: script(statements) });
  }
  const common = [...here.keys()].filter((object) => there.has(object));
  for (const object of common) {
    // A table is compared line by line.
    const rest = (statements: readonly string[]) => statements.filter((statement) => !TABLE.test(statement));
    differences.push(...ofStatements(object, rest(here.get(object)!), rest(there.get(object)!)));
  }
  const linesHere = byObject(database.lines);
  const linesThere = byObject(migrations.lines);
  for (const object of common) {
    differences.push(...ofLines(object, linesHere.get(object) ?? [], linesThere.get(object) ?? []));
  }
  return differences;
}

function ofStatements(object: string, here: readonly string[], there: readonly string[]): Difference[] {
  const added = here.filter((statement) => !there.includes(statement));
  const missing = there.filter((statement) => !here.includes(statement));
  const differences: Difference[] = [];
  for (const statement of added) {
    const { name, remove } = describe(object, statement);
    const other = missing.find((candidate) => describe(object, candidate).name === name);
    if (other === undefined) {
      differences.push({ what: `${name} is made by no migration`, keep: `${statement};`, undo: remove });
      continue;
    }
    missing.splice(missing.indexOf(other), 1);
    const replace = (wanted: string) => replacement(wanted) ?? `${remove}\n${wanted};`;
    differences.push({ what: `${name} differs from the migrations`, keep: replace(statement), undo: replace(other) });
  }
  for (const statement of missing) {
    const { name, remove } = describe(object, statement);
    differences.push({ what: `${name} is missing`, keep: remove, undo: `${statement};` });
  }
  return differences;
}

/** Columns and constraints. */
function ofLines(object: string, here: readonly string[], there: readonly string[]): Difference[] {
  const table = object.replace(/^(foreign )?table /, "");
  const added = here.filter((line) => !there.includes(line));
  const missing = there.filter((line) => !here.includes(line));
  const differences: Difference[] = [];
  for (const line of added) {
    const { name, add, remove } = ofLine(table, line);
    const other = missing.find((candidate) => ofLine(table, candidate).name === name);
    if (other === undefined) {
      differences.push({ what: `${name} is made by no migration`, keep: add, undo: remove });
      continue;
    }
    missing.splice(missing.indexOf(other), 1);
    const change = (from: string, to: string) =>
      isConstraint(to) ? `${remove}\n${ofLine(table, to).add}` : alterColumn(table, from, to);
    differences.push({
      what: `${name} differs from the migrations: ${line} instead of ${other}`,
      keep: change(other, line),
      undo: change(line, other),
    });
  }
  for (const line of missing) {
    const { name, add, remove } = ofLine(table, line);
    differences.push({ what: `${name} is missing`, keep: remove, undo: add });
  }
  return differences;
}

function ofLine(table: string, line: string): { readonly name: string; readonly add: string; readonly remove: string } {
  const [, constraint] = new RegExp(`^constraint (${NAME}) `).exec(line) ?? [];
  if (constraint !== undefined) {
    return {
      name: `constraint ${constraint} of table ${table}`,
      add: `alter table ${table} add ${line};`,
      remove: `alter table ${table} drop constraint ${constraint};`,
    };
  }
  const [column = ""] = new RegExp(`^${NAME}`).exec(line) ?? [];
  return {
    name: `column ${column} of table ${table}`,
    add: `alter table ${table} add column ${line};`,
    remove: `alter table ${table} drop column ${column};`,
  };
}

function isConstraint(line: string): boolean {
  return line.startsWith("constraint ");
}

/** `title text default 'x'::text not null`. */
const COLUMN = new RegExp(`^(${NAME}) (.+?)(?: default (.+?))?( not null)?$`);
/** Such a column has to be made anew. */
const GENERATED = / generated (always|by default) as /;

function alterColumn(table: string, from: string, to: string): string {
  const [, , typeBefore, fallbackBefore, notNullBefore] = COLUMN.exec(from) ?? [];
  const [, column, type, fallback, notNull] = COLUMN.exec(to) ?? [];
  if (GENERATED.test(from) || GENERATED.test(to)) {
    return `${ofLine(table, from).remove}\n${ofLine(table, to).add}`;
  }
  const actions = [
    ...(type === typeBefore ? [] : [`type ${type}`]),
    ...(fallback === fallbackBefore ? [] : [fallback === undefined ? "drop default" : `set default ${fallback}`]),
    ...(notNull === notNullBefore ? [] : [notNull ? "set not null" : "drop not null"]),
  ];
  return `alter table ${table} ${actions.map((action) => `alter column ${column} ${action}`).join(", ")};`;
}

type DescribedObject = { readonly name: string; readonly remove: string };

/** What a statement of the dump is about, and how it is taken back. */
const FORMS: readonly [RegExp, (match: RegExpExecArray, object: string) => DescribedObject][] = [
  [
    new RegExp(`^CREATE (?:UNIQUE )?INDEX (${NAME}) ON (?:ONLY )?(${NAME})\\.`),
    ([, index, schema], object) => ({ name: `index ${index} of ${object}`, remove: `drop index ${schema}.${index};` }),
  ],
  [
    new RegExp(`^CREATE (?:CONSTRAINT )?TRIGGER (${NAME}) [\\s\\S]*? ON (${QUALIFIED})`),
    ([, trigger, table], object) => ({
      name: `trigger ${trigger} of ${object}`,
      remove: `drop trigger ${trigger} on ${table};`,
    }),
  ],
  [
    new RegExp(`^create policy (${NAME}) on (${QUALIFIED})`),
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

function describe(object: string, statement: string): DescribedObject {
  for (const [form, describeMatch] of FORMS) {
    const match = form.exec(statement);
    if (match) return describeMatch(match, object);
  }
  return { name: object, remove: `drop ${object};` };
}

/** A statement that changes what is there without dropping it, and its grants with it; null where there is none. */
function replacement(statement: string): string | null {
  if (statement.startsWith("create view ")) return `${statement.replace("create view", "create or replace view")};`;
  return /^(CREATE OR REPLACE|comment on|alter table) /.test(statement) ? `${statement};` : null;
}

function byObject(statements: readonly Statement[]): Map<string, string[]> {
  const objects = new Map<string, string[]>();
  for (const { object, statement } of statements) objects.set(object, [...(objects.get(object) ?? []), statement]);
  return objects;
}

function script(statements: readonly string[]): string {
  return statements.map((statement) => `${statement};`).join("\n");
}
