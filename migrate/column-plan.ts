import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type pg from "pg";
import { placeApiNames, withClient } from "#postgres/client";
import { commandLine } from "#runtime";
import { slugOf } from "./commit.ts";
import { displayPath, type MigrateSettings } from "./committed-migrations.ts";
import { compareBothWays, compareValues, listNames, requireAssignable } from "./derived-columns.ts";
import {
  addColumns,
  copyGrants,
  type DerivedColumn,
  dropFilling,
  type FillRule,
  fillBothWays,
  fillByTrigger,
  fillNull,
  planNames,
  quoteName,
  requireFilled,
  requireRetired,
  writeComment,
} from "./plan-statements.ts";
import {
  type PlannedColumn,
  type PlannedTable,
  readExpressionTypes,
  readPlannedTable,
  requireNoDependents,
} from "./planned-table.ts";

/** A column's value, computed from other columns. */
type Assignment = { readonly column: string; readonly expression: string };

/** A change of a table's columns. */
export type ColumnChange =
  | { readonly kind: "rename"; readonly column: string; readonly to: string }
  /** If there is no expression, the values are cast. */
  | { readonly kind: "type"; readonly column: string; readonly type: string; readonly expression: string | null }
  /** The expression replaces null. */
  | { readonly kind: "not-null"; readonly column: string; readonly expression: string }
  /** Other columns replace these, as in a split or a merge; the assignments say how the columns of each side follow from the other side. */
  | { readonly kind: "replace"; readonly columns: readonly string[]; readonly assignments: readonly Assignment[] };

type TypeChange = Extract<ColumnChange, { readonly kind: "type" }>;

/** A file for `current/`, which the developer moves there in its turn. */
type PlanFile = { readonly name: string; readonly sql: string };

type ColumnPlan = { readonly name: string; readonly files: readonly PlanFile[] };

/** Writes the migrations that expand and contract a table, none of which holds up others for long, and returns their files. */
export async function writeColumnPlan(
  { url, histories }: MigrateSettings,
  table: readonly [schema: string, table: string],
  change: ColumnChange,
): Promise<string[]> {
  const { name, files } = await withClient(url, async (client) => {
    const plan = await planChange(client, table, change);
    const place = async (file: PlanFile) => ({ ...file, sql: await placeApiNames(client, file.sql) });
    return { ...plan, files: await Promise.all(plan.files.map(place)) };
  });
  const folder = join(histories.find((history) => history.name === "project")!.folder, "plans", slugOf(name));
  // The folder has all files or does not exist: a part of a plan would be taken for a whole one.
  const draft = `${folder}.part`;
  await rm(draft, { recursive: true, force: true });
  await mkdir(draft, { recursive: true });
  for (const file of files) await writeFile(join(draft, file.name), file.sql);
  await rename(draft, folder).catch(async (error: NodeJS.ErrnoException) => {
    await rm(draft, { recursive: true });
    if (!["ENOTEMPTY", "EEXIST", "ENOTDIR"].includes(error.code ?? "")) throw error;
    throw new Error(`${displayPath(folder)} exists. Remove it before you plan anew.`);
  });
  return files.map(({ name }) => displayPath(join(folder, name)));
}

async function planChange(
  client: pg.ClientBase,
  table: readonly [schema: string, table: string],
  change: ColumnChange,
): Promise<ColumnPlan> {
  await client.query("begin read only");
  try {
    await client.query("set local search_path = ''");
    const planned = await readPlannedTable(client, table, "columns" in change ? change.columns : [change.column]);
    return await planFiles(client, planned, change);
  } finally {
    await client.query("rollback");
  }
}

function planFiles(client: pg.ClientBase, table: PlannedTable, change: ColumnChange): Promise<ColumnPlan> {
  switch (change.kind) {
    case "rename":
      return planRename(client, table, change.to);
    case "type":
      return planType(client, table, change);
    case "not-null":
      return planNotNull(client, table, change.expression);
    case "replace":
      return planReplacement(client, table, change.assignments);
  }
}

function requireFree(table: PlannedTable, name: string): void {
  if (table.names.includes(name)) throw new Error(`${table.quoted} has a column ${name} already.`);
}

/** Both columns hold the same values. In the end the new one is dropped, and the old one gets its name, with everything that depends on it. */
async function planRename(client: pg.ClientBase, table: PlannedTable, to: string): Promise<ColumnPlan> {
  requireFree(table, to);
  const [old] = table.columns as [PlannedColumn];
  const { quoted, type } = old;
  const added = { quoted: await quoteName(client, to), type, expression: quoted };
  const names = await planNames(client, table, to);
  const isFilled = await compareValues(client, [added]);
  const rule = {
    names,
    body: fillBothWays([added], [{ quoted, type, expression: added.quoted }], isFilled),
    isFilled,
    column: added.quoted,
    sentence: `${quoted} and ${added.quoted} must be the same.`,
  };
  const former = table.apiVersions ? [`@formerName ${table.apiVersions.until} ${old.name}`] : [];
  return {
    name: `${table.name}-${to}`,
    files: [
      expandFile(`${quoted} is renamed to ${added.quoted}, which clients see after the backfill.`, [
        ...addColumns(table, [added]),
        ...fillByTrigger(table, rule),
      ]),
      switchFile(table, rule, [{ quoted: added.quoted, of: old, comment: old.comment }]),
      contractFile([
        requireFilled(table, rule),
        ...dropFilling(table, names),
        `alter table ${table.quoted} drop column ${added.quoted};`,
        `alter table ${table.quoted} rename column ${quoted} to ${added.quoted};`,
        writeComment(table, added.quoted, former, old.comment),
      ]),
    ],
  };
}

/** The new column takes the name of the old one in the end. Until then no client uses it. */
async function planType(
  client: pg.ClientBase,
  table: PlannedTable,
  { column, type: wanted, expression }: TypeChange,
): Promise<ColumnPlan> {
  requireNoDependents(table);
  const [old] = table.columns as [PlannedColumn];
  requireFree(table, `${column}_new`);
  const quoted = await quoteName(client, `${column}_new`);
  const [type] = (await readExpressionTypes(client, [`null::${wanted}`], table.quoted)) as [string];
  const added = { quoted, type, expression: expression ?? `${old.quoted}::${type}` };
  const back = { quoted: old.quoted, type: old.type, expression: `${quoted}::${old.type}` };
  await requireAssignable(client, table, [added], [back]);
  const names = await planNames(client, table, `${column}_new`);
  const isFilled = await compareBothWays(client, [added], [back]);
  const rule = {
    names,
    body: fillBothWays([added], [back], isFilled),
    isFilled,
    column: quoted,
    sentence: `${old.quoted} and ${quoted} must be the same.`,
  };
  const notNull = await quoteName(client, `${table.name}_${column}_new_not_null`);
  const alter = `alter table ${table.quoted}`;
  const checkNotNull = `${alter} drop constraint if exists ${notNull}, add constraint ${notNull} check (${quoted} is not null) not valid;`;
  const setNotNull = [
    `${alter} validate constraint ${notNull};`,
    `${alter} alter column ${quoted} set not null;`,
    `${alter} drop constraint ${notNull};`,
  ];
  const newName = (index: string) => index.replace(/"?$/, (end) => `_new${end}`);
  return {
    name: `${table.name}-${column}`,
    files: [
      expandFile(`${old.quoted} becomes ${type}. Until the contract no client uses ${quoted}.`, [
        ...addColumns(table, [added]),
        ...fillByTrigger(table, rule),
        ...(old.isNotNull ? [checkNotNull] : []),
      ]),
      ...table.indexes.map(({ name, definition }, at) =>
        indexFile(11 + at, definition.replace(` ${name} `, ` ${newName(name)} `), old.quoted, quoted),
      ),
      contractFile([
        requireFilled(table, rule),
        ...(old.isNotNull ? setNotNull : []),
        ...dropFilling(table, names),
        ...copyGrants(table, old, quoted),
        `${alter} drop column ${old.quoted};`,
        `${alter} rename column ${quoted} to ${old.quoted};`,
        ...(old.default === null ? [] : [`${alter} alter column ${old.quoted} set default (${old.default})::${type};`]),
        ...table.indexes.map(
          (index) => `alter index ${index.quotedSchema}.${newName(index.name)} rename to ${index.name};`,
        ),
        writeComment(table, old.quoted, [], old.comment),
      ]),
    ],
  };
}

async function planNotNull(client: pg.ClientBase, table: PlannedTable, expression: string): Promise<ColumnPlan> {
  const [column] = table.columns as [PlannedColumn];
  const { quoted, name, type } = column;
  if (column.isNotNull) throw new Error(`${table.quoted}.${quoted} is not null already.`);
  await readExpressionTypes(client, [`(${expression})::${type}`], table.quoted);
  const names = await planNames(client, table, name);
  const rule = {
    names,
    body: fillNull({ quoted, expression }),
    isFilled: `${quoted} is not null`,
    column: quoted,
    sentence: `${quoted} must not be null.`,
  };
  const alter = `alter table ${table.quoted}`;
  const advice = `-- From now on writers have to name the column, unless it has a default:\n-- ${alter} alter column ${quoted} set default …;`;
  return {
    name: `${table.name}-${name}`,
    files: [
      expandFile(`${quoted} becomes not null: a trigger replaces null.`, fillByTrigger(table, rule)),
      contractFile([
        requireFilled(table, rule),
        `${alter} alter column ${quoted} set not null;`,
        ...dropFilling(table, names),
        ...(column.default === null ? [advice] : []),
      ]),
    ],
  };
}

async function planReplacement(
  client: pg.ClientBase,
  table: PlannedTable,
  assignments: readonly Assignment[],
): Promise<ColumnPlan> {
  requireNoDependents(table);
  const isOld = ({ column }: Assignment) => table.columns.some(({ name }) => name === column);
  const forward = assignments.filter((assignment) => !isOld(assignment));
  for (const { column } of forward) requireFree(table, column);
  const types = await readExpressionTypes(
    client,
    forward.map(({ expression }) => expression),
    table.quoted,
  );
  const added: DerivedColumn[] = [];
  for (const [at, { column, expression }] of forward.entries())
    added.push({ quoted: await quoteName(client, column), type: types[at]!, expression });
  const old = table.columns.map(({ name, quoted, type }) => {
    const expression = assignments.find(({ column }) => column === name)?.expression;
    if (expression === undefined) throw new Error(`Say how ${name} follows from the new columns: "${name} = …".`);
    return { quoted, type, expression };
  });
  await requireAssignable(client, table, added, old);
  const names = await planNames(client, table, forward.map(({ column }) => column).join("_"));
  const isFilled = await compareBothWays(client, added, old);
  const rule = {
    names,
    body: fillBothWays(added, old, isFilled),
    isFilled,
    column: added[0]!.quoted,
    sentence: `${listNames(old)} and ${listNames(added)} must be the same.`,
  };
  return {
    name: [table.name, ...forward.map(({ column }) => column)].join("-"),
    files: [
      expandFile(`${listNames(added)} replace ${listNames(old)}. Clients see them after the backfill.`, [
        ...addColumns(table, added),
        ...fillByTrigger(table, rule),
      ]),
      switchFile(
        table,
        rule,
        added.map(({ quoted }) => ({ quoted, of: table.columns[0]!, comment: null })),
      ),
      contractFile([
        ...requireRetired(table),
        requireFilled(table, rule),
        ...dropFilling(table, names),
        ...(table.indexes.length === 0
          ? []
          : [
              `-- Dropped with the columns; create those that you need before: ${table.indexes.map(({ name }) => name).join(", ")}`,
            ]),
        ...old.map(({ quoted }) => `alter table ${table.quoted} drop column ${quoted};`),
        ...added.map(({ quoted }) => writeComment(table, quoted, [], null)),
      ]),
    ],
  };
}

type SwitchedColumn = { readonly quoted: string; readonly of: PlannedColumn; readonly comment: string | null };

function switchFile(table: PlannedTable, rule: FillRule, added: readonly SwitchedColumn[]): PlanFile {
  const { apiVersions, columns } = table;
  const since = apiVersions ? [`@since ${apiVersions.since}`] : [];
  const until = apiVersions ? [`@until ${apiVersions.until}`] : [];
  // Two columns cannot have one name in GraphQL.
  const withoutName = (comment: string | null) => comment?.replaceAll(/^@name .*\n?/gm, "") ?? null;
  return {
    name: "0020-switch.sql",
    sql: toScript(`Clients may use ${listNames(added)} now; both sides are kept the same.`, [
      requireFilled(table, rule),
      ...added.flatMap(({ quoted, of }) => copyGrants(table, of, quoted)),
      ...added.map(({ quoted, comment }) => writeComment(table, quoted, since, withoutName(comment))),
      ...columns.map(({ quoted, comment }) =>
        writeComment(table, quoted, [...until, `@deprecated Use ${listNames(added)}.`], comment),
      ),
    ]),
  };
}

function expandFile(subject: string, statements: readonly string[]): PlanFile {
  const next = `When it is applied, run: ${commandLine("migrate", "backfill")}`;
  return { name: "0010-expand.sql", sql: toScript(`${subject}\n-- ${next}`, statements) };
}

function contractFile(statements: readonly string[]): PlanFile {
  return { name: "0030-contract.sql", sql: toScript("When no client needs the former shape.", statements) };
}

/** Postgres writes `CREATE INDEX name ON public.films USING btree (year)`. */
function indexFile(number: number, definition: string, old: string, added: string): PlanFile {
  const at = definition.indexOf(" USING ");
  const head = definition.slice(0, at).replace(" INDEX ", " INDEX CONCURRENTLY IF NOT EXISTS ");
  const isOld = new RegExp(`(?<![\\w".])${old.replaceAll("$", "\\$")}(?![\\w".])`, "g");
  return {
    name: `00${number}-index.sql`,
    sql: `--! no-transaction\n${head}${definition.slice(at).replaceAll(isOld, added)};\n`,
  };
}

function toScript(subject: string, statements: readonly string[]): string {
  return `-- ${subject}\n\n${statements.join("\n")}\n`;
}
