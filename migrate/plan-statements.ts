import type pg from "pg";
import { commandLine } from "#runtime";
import { MANY_ROWS } from "./many-rows.ts";
import type { PlannedColumn, PlannedTable } from "./planned-table.ts";
import { FILLS_SMALL_TABLES } from "./statement-verdict.ts";

/** The objects that fill columns and show that they are filled, quoted. */
type PlanNames = { readonly function: string; readonly trigger: string; readonly constraint: string };

export async function planNames(
  client: pg.ClientBase,
  { name, quotedSchema, lastTrigger }: PlannedTable,
  subject: string,
): Promise<PlanNames> {
  // Triggers run in the order of their names: one that runs later could change the columns again.
  const trigger = [`_990_fill_${subject}`, `zz_990_fill_${subject}`].find(
    (each) => lastTrigger === null || lastTrigger <= each,
  );
  if (trigger === undefined)
    throw new Error(`The trigger ${lastTrigger} would run after that of the plan. Rename it to one before zz_990.`);
  return {
    function: `${quotedSchema}.${await quoteName(client, `tg__${name}_fill_${subject}`)}`,
    trigger: await quoteName(client, trigger),
    constraint: await quoteName(client, `${name}_${subject}_filled`),
  };
}

/** The name as Postgres writes it in definitions: quoted only if necessary. */
export async function quoteName(client: pg.ClientBase, name: string): Promise<string> {
  const { rows } = await client.query<{ quoted: string }>("select pg_catalog.quote_ident($1) as quoted", [name]);
  return rows[0]!.quoted;
}

function quoteText(text: string): string {
  return `e'${text.replaceAll("\\", "\\\\").replaceAll("'", "''").replaceAll("\n", "\\n")}'`;
}

/** A column, with its value computed from other columns. */
export type DerivedColumn = { readonly quoted: string; readonly type: string; readonly expression: string };

/** The behaviours with which GraphQL shows a column, and an API version before all others. */
const HIDDEN =
  "@until 0\n@behavior -attribute:select -attribute:insert -attribute:update -attribute:filterBy -attribute:orderBy";

/** Adds empty columns, which are hidden from clients if privileges are granted per column. */
export function addColumns({ quoted: table }: PlannedTable, added: readonly DerivedColumn[]): string[] {
  return added.flatMap(({ quoted, type }) => [
    `alter table ${table} add column if not exists ${quoted} ${type};`,
    `comment on column ${table}.${quoted} is ${quoteText(HIDDEN)};`,
  ]);
}

const assign = ({ quoted, expression }: Omit<DerivedColumn, "type">) =>
  `NEW.${quoted} := (select ${expression} from (select NEW.*) as given);`;

export function fillNull(column: Omit<DerivedColumn, "type">): string[] {
  return [`if NEW.${column.quoted} is null then`, `  ${assign(column)}`, "end if;"];
}

/** Statements that change the new columns change the old ones, all others change the new ones. Images are compared if values cannot be. */
export function fillBothWays(
  added: readonly DerivedColumn[],
  old: readonly DerivedColumn[],
  isFilled: string,
): string[] {
  const image = (row: string, columns: readonly DerivedColumn[]) =>
    `row(${columns.map(({ quoted }) => `${row}.${quoted}`).join(", ")})::pg_catalog.record`;
  const differs = (columns: readonly DerivedColumn[]) =>
    `${image("NEW", columns)} operator(pg_catalog.*<>) ${image("OLD", columns)}`;
  return [
    "if TG_OP = 'INSERT' then",
    `  if ${added.map(({ quoted }) => `NEW.${quoted} is null`).join(" and ")} then`,
    ...added.map((column) => `    ${assign(column)}`),
    "  else",
    ...old.map((column) => `    ${assign(column)}`),
    "  end if;",
    `elsif ${differs(added)} then`,
    ...old.map((column) => `  ${assign(column)}`),
    `elsif ${differs(old)} or not (select ${isFilled} from (select NEW.*) as given) then`,
    ...added.map((column) => `  ${assign(column)}`),
    "end if;",
  ];
}

/** The first word of the comment on a check constraint; a column follows, which a trigger fills in each row that is written. */
export const BACKFILL_TAG = "@backfill";

export type FillRule = {
  readonly names: PlanNames;
  /** The lines of the trigger function. */
  readonly body: readonly string[];
  readonly isFilled: string;
  /** The column whose update fills a row, and the sentence for users whose rows violate the constraint. */
  readonly column: string;
  readonly sentence: string;
};

/** The statements can be repeated, as `npm run dev` does. The constraint holds for each written row, and is validated after the backfill. */
export function fillByTrigger({ quoted: table }: PlannedTable, rule: FillRule): string[] {
  const { names, body, isFilled, column, sentence } = rule;
  return [
    `create or replace function ${names.function}() returns trigger as $fill$
begin
${body.map((line) => `  ${line}`).join("\n")}
  return NEW;
end;
$fill$ language plpgsql set search_path = '';`,
    `revoke all on function ${names.function} from public;`,
    `create or replace trigger ${names.trigger} before insert or update on ${table} for each row execute function ${names.function}();`,
    `alter table ${table} drop constraint if exists ${names.constraint}, add constraint ${names.constraint} check (${isFilled}) not valid;`,
    `comment on constraint ${names.constraint} on ${table} is ${quoteText(`${BACKFILL_TAG} ${column}\n${sentence}`)};`,
  ];
}

/**
 * Reads no rows after a backfill, and otherwise all rows, while others read and write. Fills small tables itself, such as those of a new
 * database, whose rows come from migrations.
 */
export function requireFilled({ quoted: table }: PlannedTable, { names, isFilled, column }: FillRule): string {
  return `do $$
begin
  ${FILLS_SMALL_TABLES}
  if exists (select from pg_catalog.pg_constraint where conrelid = ${quoteText(table)}::pg_catalog.regclass
    and pg_catalog.quote_ident(conname) = ${quoteText(names.constraint)} and convalidated) then
    return;
  end if;
  if (select pg_catalog.count(*) from (select from ${table} limit ${MANY_ROWS}) as counted) < ${MANY_ROWS} then
    update ${table} set ${column} = ${column} where (${isFilled}) is false;
  end if;
  alter table ${table} validate constraint ${names.constraint};
exception when check_violation then
  raise exception '%', ${quoteText(`The backfill of ${table} is not complete.`)}
    using hint = ${quoteText(`Run "${commandLine("migrate", "backfill")}", and apply this migration again.`)};
end;
$$;`;
}

export function dropFilling(
  { quoted: table }: PlannedTable,
  { trigger, function: name, constraint }: PlanNames,
): string[] {
  return [
    `drop trigger ${trigger} on ${table};`,
    `drop function ${name};`,
    `alter table ${table} drop constraint ${constraint};`,
  ];
}

export function copyGrants({ quoted: table }: PlannedTable, { grants }: PlannedColumn, column: string): string[] {
  return grants.map(({ privilege, roles }) => `grant ${privilege} (${column}) on ${table} to ${roles};`);
}

export function writeComment(
  { quoted: table }: PlannedTable,
  column: string,
  tags: readonly string[],
  comment: string | null,
): string {
  const text = [...tags, ...(comment ? [comment] : [])].join("\n");
  return `comment on column ${table}.${column} is ${text === "" ? "null" : quoteText(text)};`;
}

/** Refuses to drop columns that a version of /api shows, unless there is no row to show. */
export function requireRetired({ apiVersions, columns, quoted: table }: PlannedTable): string[] {
  if (!apiVersions) return [];
  const { until } = apiVersions;
  const shown = columns.map(({ name }) => name).join(", ");
  return [
    `do $$
begin
  -- A database can be served without the table.
  if pg_catalog.to_regclass('api.versions') is null then return; end if;
  if exists (select from ${table}) and exists (select from api.versions where number <= ${until} and status <> 'retired') then
    raise exception '%', ${quoteText(`Version ${until} of /api still shows ${shown}.`)}
      using hint = ${quoteText(`Retire it before, by a migration: update api.versions set status = 'retired' where number <= ${until};`)};
  end if;
end;
$$;`,
  ];
}
