import type { MatchedColumn, NestedChangePlan } from "../plan/plan.ts";
import { linkedRows, SAVED_NAMES, savedColumn, saveRows } from "./build-nested.ts";
import { buildConjunction } from "./build-select.ts";
import { PAYLOAD_JSON, recordsFromItem } from "./build-write.ts";
import {
  catalogSql,
  compile,
  identifier,
  integer,
  join,
  NOTHING,
  operatorIn,
  qualifiedIdentifier,
  type Sql,
  type StatementTemplate,
  sql,
} from "./sql.ts";

type ChangePlanOf<Kind extends NestedChangePlan["kind"]> = Extract<NestedChangePlan, { readonly kind: Kind }>;

const EQUALS = sql`=`;

/** One statement of a nested update: it changes rows, and fails if not all of them could be changed. */
export function buildNestedChange(plan: NestedChangePlan): StatementTemplate {
  switch (plan.kind) {
    case "update rows":
      return compile(updateRows(plan));
    case "insert missing rows":
      return compile(insertMissingRows(plan));
    case "save rows":
      return compile(saveExistingRows(plan));
    case "update parent":
      return compile(updateParent(plan));
    case "remove rows":
      return compile(removeRows(plan));
  }
}

function updateRows(plan: ChangePlanOf<"update rows">): Sql {
  const table = qualifiedIdentifier(plan.table);
  const change = sql`update ${table} set ${setList(plan)} from ${recordsAndLinks(plan)} where ${isMatched(plan)} returning 1`;
  const existing = sql`select pg_catalog.count(*) from ${recordsAndLinks(plan)} join ${table} on ${isMatched(plan)}`;
  return sql`with "written" as (${change}) select ${repeatedGuard(plan)}, ${refusedGuard(existing)} from "written"`;
}

/** Fails for rows with equal keys, such as `[1]` and `"{1}"`: Postgres would apply any of them. */
function repeatedGuard(plan: ChangePlanOf<"update rows">): Sql {
  const { records, ordinal, matches } = plan;
  const keys = matches.map((match) => columnValue(match, records.alias));
  const last = sql`select pg_catalog.max(${identifier(records.alias, ordinal)}) as "row" from ${recordsAndLinks(plan)}`;
  const repeated = sql`${last} group by ${join(keys, ", ")} having pg_catalog.count(*) operator(pg_catalog.>) 1 limit 1`;
  const message = sql`'planner.nested repeated ' operator(pg_catalog.||) "row"::pg_catalog.text`;
  return sql`(select pg_catalog.current_setting(${message}) from (${repeated}) "_")`;
}

/** Fails if policies silently leave out rows. The subquery sees the rows before the change. */
function refusedGuard(existing: Sql): Sql {
  return sql`case when pg_catalog.count(*) < (${existing}) then pg_catalog.current_setting('planner.nested refused 1') end`;
}

function setList({ set: columns, records }: { readonly set: readonly MatchedColumn[] } & NestedChangePlan): Sql {
  const set = columns.map((column) => sql`${identifier(column.name)} = ${columnValue(column, records.alias)}`);
  return join(set, ", ");
}

function insertMissingRows(plan: ChangePlanOf<"insert missing rows">): Sql {
  const { table, records, ordinal, set, where } = plan;
  const names = set.map(({ name }) => identifier(name));
  const values = set.map((column) => sql` ${columnValue(column, records.alias)}`);
  const isMissing = sql`not exists (select 1 from ${qualifiedIdentifier(table)} where ${isMatched({ ...plan, where: [] })})`;
  const only = where.length > 0 ? sql`${buildConjunction(where)} and ${isMissing}` : isMissing;
  const rows = sql`select${join(values, ",")} from ${recordsAndLinks(plan)} where ${only} order by ${identifier(records.alias, ordinal)}`;
  const insert = sql`insert into ${qualifiedIdentifier(table)} (${join(names, ", ")}) ${rows}`;
  if (plan.read.length === 0) return insert;
  const read = plan.read.map((name) => identifier(table.name, name));
  return sql`with "written" as (${insert} returning ${join(read, ", ")}) select from "written" limit 0`;
}

/** Saves the existing rows with their position in the payload. */
function saveExistingRows(plan: ChangePlanOf<"save rows">): Sql {
  const { table, records, ordinal, saved } = plan;
  const position = identifier(records.alias, ordinal);
  const keys = saved.columns.map((column, index) => sql`, ${savedColumn(table, column, index)}`);
  const found = sql`select ${position} as "row"${join(keys, "")} from ${recordsAndLinks(plan)} join ${qualifiedIdentifier(table)} on ${isMatched(plan)} order by ${position}`;
  const sent = sql`pg_catalog.json_array_length(${PAYLOAD_JSON})`;
  const missing = sql`select pg_catalog.min("n") from pg_catalog.generate_series(1, ${sent}) as "sent"("n") where not exists (select 1 from "found" where "found"."row" = "sent"."n")`;
  const guard = sql`case when pg_catalog.count(*) <> ${sent} then pg_catalog.current_setting('planner.nested missing ' || (${missing})::pg_catalog.text) end`;
  return sql`with "found" as (${found}) select ${saveRows(saved, sql` order by "row"`)}, ${guard} from "found"`;
}

function updateParent(plan: ChangePlanOf<"update parent">): Sql {
  const { table, set, conditions, saved } = plan;
  const where = conditions.length > 0 ? sql` where ${buildConjunction(conditions)}` : NOTHING;
  const keys =
    saved.columns.length > 0
      ? join(
          saved.columns.map((column, index) => savedColumn(table, column, index)),
          ", ",
        )
      : sql`1`;
  const change =
    set.length > 0
      ? sql`update ${qualifiedIdentifier(table)} set ${setList(plan)} from ${recordsAndLinks(plan)}${where} returning ${keys}`
      : sql`select ${keys} from ${qualifiedIdentifier(table)}${where} for no key update`;
  const guard = sql`case when pg_catalog.count(*) operator(pg_catalog.<>) 1 then pg_catalog.current_setting('planner.nested parent ' operator(pg_catalog.||) pg_catalog.count(*)::pg_catalog.text) end`;
  return sql`with "written" as (${change}) select ${saveRows(saved)}, ${guard} from "written"`;
}

function removeRows(plan: ChangePlanOf<"remove rows">): Sql {
  const { table, records, links, matches, columns, parents, by } = plan;
  const [above, ...targets] = links;
  const parent = above!.alias;
  const from = linkedRows(above!);
  const isLinked = sql`${identifier(records.alias, above!.pointer)} = ${identifier(parent, SAVED_NAMES.row)}`;
  const isKept = sql`select 1 from ${recordsAndLinks({ records, links: targets })} where ${join([isLinked, ...equalities(matches, plan)], " and ")}`;
  const numbers = join(parents.map(integer), ", ");
  const isRemoved = sql`${allEqual(columns, plan)} and ${identifier(parent, SAVED_NAMES.row)} in (${numbers}) and not exists (${isKept})`;
  const unset = join(
    columns.map(({ name }) => sql`${identifier(name)} = null`),
    ", ",
  );
  const target = qualifiedIdentifier(table);
  const change =
    by === "delete"
      ? sql`delete from ${target} using ${from} where ${isRemoved} returning 1`
      : sql`update ${target} set ${unset} from ${from} where ${isRemoved} returning 1`;
  const existing = sql`select pg_catalog.count(*) from ${target}, ${from} where ${isRemoved}`;
  return sql`with "written" as (${change}) select ${refusedGuard(existing)} from "written"`;
}

function isMatched(plan: Pick<NestedChangePlan, "table" | "records" | "matches" | "where">): Sql {
  const equal = allEqual(plan.matches, plan);
  return plan.where.length > 0 ? sql`${equal} and ${buildConjunction(plan.where)}` : equal;
}

function allEqual(columns: readonly MatchedColumn[], plan: Pick<NestedChangePlan, "table" | "records">): Sql {
  return join(equalities(columns, plan), " and ");
}

function equalities(
  columns: readonly MatchedColumn[],
  { table, records }: Pick<NestedChangePlan, "table" | "records">,
): readonly Sql[] {
  return columns.map((column) => {
    return sql`${identifier(table.name, column.name)} ${operatorIn(column.operatorSchema, EQUALS)} ${columnValue(column, records.alias)}`;
  });
}

function columnValue({ name, sqlType, sources }: MatchedColumn, records: string): Sql {
  if (sources.length === 0) return identifier(records, name);
  const values = sources.map(({ link, column }) => {
    const index = link.saved.columns.findIndex((saved) => saved.name === column);
    return sql`${identifier(link.alias, SAVED_NAMES.key(index))}::${catalogSql(sqlType)}`;
  });
  return values.length === 1 ? values[0]! : sql`coalesce(${join(values, ", ")})`;
}

function recordsAndLinks({ records, links }: Pick<NestedChangePlan, "records" | "links">): Sql {
  const joins = links.map((link) => {
    const isLinked = sql`${identifier(link.alias, SAVED_NAMES.row)} = ${identifier(records.alias, link.pointer)}`;
    return sql` left join ${linkedRows(link)} on ${isLinked}`;
  });
  return sql`${recordsFromItem(records)}${join(joins, "")}`;
}
