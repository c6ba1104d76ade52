import type { Format } from "../intent.ts";
import type { LongPlan } from "../plan/long.ts";
import type { CallPlan, Guard, Plan, ReadPlan, Total, WritePlan } from "../plan/plan.ts";
import type { Selection } from "../plan/selection.ts";
import { bodyOf, lineOf } from "./body.ts";
import { callResult } from "./call.ts";
import { changeResult } from "./change.ts";
import { guardColumn } from "./guard.ts";
import { keptRows, placeColumn } from "./page.ts";
import { RESULT, selectQuery, sourceClause, unorderedQuery, whereClause } from "./select.ts";
import { compile, integer, join, literal, NOTHING, type Query, ROW, type Sql, sql } from "./sql.ts";

/**
 * One statement for the whole answer: it gives one row, with the columns that `toAnswer` reads. The plan was checked
 * against the catalogue; this only spells it out. An explained one gives the lines of Postgres's plan instead.
 */
export function toQuery(plan: Plan): Query {
  return compile(sql`${explaining(plan.format)}${statementOf(plan)}`);
}

/**
 * Rows one by one, each as a text of its own, for answers that are too long to be held. Behind it stands what `toAnswer`
 * reads behind the number of rows. Nothing of that speaks of the row: Postgres works it out once, when the first one is
 * there and so whatever a function may set has been set.
 */
export function toRowsQuery(plan: LongPlan): Query {
  const { rows, body, total } = plan;
  const before = plan.kind === "call" ? resultOf(plan) : NO_RESULT;
  const said = ["response.headers", "response.status"].map((name) => sql`(select ${setting(name)})`);
  const columns = join([lineOf(body), totalColumn(total, rows), ...said], ", ");
  return compile(withTables(before, sql`select ${columns} from (${selectQuery(rows)}) "_"`));
}

/** How many rows Postgres expects, window aside: in JSON, as `Plan Rows` of the plan. */
export function toEstimateQuery({ rows, page }: ReadPlan): Query {
  return compile(sql`explain (format json) ${matching(page?.all ?? rows)}`);
}

function statementOf(plan: Plan): Sql {
  switch (plan.kind) {
    case "read":
      return readStatement(plan);
    case "write":
      return writeStatement(plan);
    case "call":
      return callStatement(plan);
  }
}

function readStatement(plan: ReadPlan): Sql {
  const kept = plan.page ? [sql`${RESULT} as (${keptRows(plan.kept)})`] : NO_RESULT;
  return answerFrom(plan, selectQuery(plan.rows), kept, placeColumns(plan));
}

function callStatement(plan: CallPlan): Sql {
  return answerFrom(plan, selectQuery(plan.rows), resultOf(plan), placeColumns(plan));
}

function resultOf({ call, result }: CallPlan): Sql[] {
  return result ? [sql`${RESULT} as (${callResult(call, result)})`] : [];
}

function writeStatement(plan: WritePlan): Sql {
  const { change, result, location, body, rows } = plan;
  const written = [sql`${RESULT} as (${changeResult(change, result)})`];
  const merges = change.kind === "insert" && change.conflict?.resolution === "merge";
  const whereItIs = location && location.length > 0 ? locationColumn(location) : sql`null`;
  const inserted = merges ? setting("pgrst.inserted") : sql`null`;
  const shown = body.kind === "none" ? sql`select from ${RESULT}` : selectQuery(rows);
  return answerFrom(plan, shown, written, [whereItIs, inserted]);
}

const NO_RESULT: readonly Sql[] = [];

/** `rows` are called "_", and "page" where they are read twice. */
function answerFrom(plan: Plan, rows: Sql, before: readonly Sql[], more: readonly Sql[]): Sql {
  const isPage = plan.body.kind === "csv";
  const tables = isPage ? [...before, sql`"page" as (${rows})`] : before;
  const columns = [
    bodyOf(plan.body),
    pageCount(plan),
    totalColumn(plan.total, plan.page?.all ?? plan.rows),
    setting("response.headers"),
    setting("response.status"),
    ...more,
    ...guards(plan.guards),
  ];
  const list = sql`select ${join(columns, ", ")} from ${isPage ? sql`"page"` : sql`(${rows})`} "_"`;
  return withTables(tables, list);
}

/** For HEAD nobody looks at what a function gives. It is called all the same: it may refuse, or say a header. */
function pageCount(plan: Plan): Sql {
  const isUnseen = plan.kind === "call" && plan.call.isScalar && plan.body.kind === "none";
  return isUnseen ? sql`count(${ROW})` : sql`count(*)`;
}

function withTables(tables: readonly Sql[], statement: Sql): Sql {
  return tables.length > 0 ? sql`with ${join(tables, ", ")} ${statement}` : statement;
}

function placeColumns({ page, rows }: ReadPlan | CallPlan): Sql[] {
  return page ? [placeColumn(rows)] : [];
}

function guards(all: readonly Guard[]): Sql[] {
  return all.length > 0 ? [guardColumn(all)] : [];
}

function totalColumn(total: Total, rows: Selection): Sql {
  if (total.kind !== "counted") return sql`null`;
  if (total.most === null && !rows.grouped) return sql`(select count(*)${sourceClause(rows)}${whereClause(rows)})`;
  const most = total.most === null ? NOTHING : sql` limit ${integer(total.most)}`;
  return sql`(select count(*) from (${matching(rows)}${most}) "_")`;
}

/** A row for each that there is, without what it takes to show it. */
function matching(rows: Selection): Sql {
  return rows.grouped ? unorderedQuery(rows) : sql`select 1${sourceClause(rows)}${whereClause(rows)}`;
}

/** Read after everything else has run, functions and triggers included. After its first use a setting is empty, not null. */
function setting(name: string): Sql {
  return sql`nullif(current_setting(${literal(name)}, true), '')`;
}

/** The values of the columns, as JSON has them, when one row was written. */
function locationColumn(columns: readonly string[]): Sql {
  const values = columns.map((name) => sql`row_to_json(${RESULT}.*)->>${literal(name)}`);
  return sql`case when count(*) = 1 then (select json_build_array(${join(values, ", ")}) from ${RESULT}) end`;
}

const OPTIONS = {
  analyze: sql`analyze`,
  verbose: sql`verbose`,
  settings: sql`settings`,
  buffers: sql`buffers`,
  wal: sql`wal`,
};

function explaining(format: Format): Sql {
  if (format.kind !== "plan") return NOTHING;
  const form = format.as === "json" ? sql`format json` : sql`format text`;
  return sql`explain (${join([form, ...format.options.map((option) => OPTIONS[option])], ", ")}) `;
}
