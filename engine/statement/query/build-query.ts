import type { ResultRow } from "../../database/statement.ts";
import type { ApiError } from "../../errors.ts";
import type { CursorPosition, ResponseFormat } from "../intent.ts";
import type { BodyPlan } from "../plan/negotiate-format.ts";
import {
  type CallPlan,
  keyMismatch,
  notOneRow,
  type Plan,
  type ReadPlan,
  type RowCountGuard,
  type TotalPlan,
  tooManyRowsAffected,
  type WritePlan,
} from "../plan/plan.ts";
import { type OutputColumn, type SelectPlan, withOutputs } from "../plan/selection.ts";
import type { StreamedPlan } from "../plan/streamed-plan.ts";
import { buildCall, SCALAR_COLUMN } from "./build-call.ts";
import { buildSelect, buildUnorderedSelect, fromClause, RESULT_CTE, whereClause } from "./build-select.ts";
import { buildChange } from "./build-write.ts";
import {
  compile,
  identifier,
  integer,
  join,
  literal,
  NOTHING,
  qualifiedIdentifier,
  ROW,
  type Sql,
  type StatementTemplate,
  sql,
} from "./sql.ts";

/** Without the quotes, which are not the same in all of the server's languages. */
const GUARD_MESSAGE = /(?<code>PGRST1\d\d) (?<rows>\d+)/;

/** As PostgREST writes it: a record's text without its parentheses. */
const CSV_LINE = sql`substring((${ROW})::text, 2, length((${ROW})::text) - 2)`;
const CSV_LINES = sql`coalesce(string_agg(${CSV_LINE}, chr(10)), '')`;
const CSV_NAMES = sql`select json_object_keys(row_to_json("first".*)) as "name" from (select * from "page" limit 1) "first"`;
const CSV_HEADER = sql`(select coalesce(string_agg("name", ','), '') from (${CSV_NAMES}) "names")`;

/**
 * One statement for the whole answer: it gives one row, with the columns that `toAnswer` reads. The plan was checked
 * against the catalogue; this only spells it out. An explained one gives the lines of Postgres's plan instead.
 */
export function buildQuery(plan: Plan): StatementTemplate {
  return compile(sql`${explainPrefix(plan.format)}${buildStatement(plan)}`);
}

/**
 * Rows one by one, each as a text of its own, for answers that are too long to be held. Behind it stands what `toAnswer`
 * reads behind the number of rows. Nothing of that speaks of the row: Postgres works it out once, when the first one is
 * there and so whatever a function may set has been set.
 */
export function buildRowsQuery(plan: StreamedPlan): StatementTemplate {
  const { rows, body, total } = plan;
  const before = plan.kind === "call" ? resultCte(plan) : NO_CTES;
  const sqlResponse = ["response.headers", "response.status"].map((name) => sql`(select ${readSetting(name)})`);
  const columns = join([rowText(body), totalColumn(total, rows), ...sqlResponse], ", ");
  return compile(withCtes(before, sql`select ${columns} from (${buildSelect(rows)}) "_"`));
}

/** How many rows Postgres expects, window aside: in JSON, as `Plan Rows` of the plan. */
export function buildEstimateQuery({ rows, keyset: page }: ReadPlan): StatementTemplate {
  return compile(sql`explain (format json) ${matchingRows(page?.all ?? rows)}`);
}

function buildStatement(plan: Plan): Sql {
  switch (plan.kind) {
    case "read":
      return buildReadStatement(plan);
    case "write":
      return buildWriteStatement(plan);
    case "call":
      return buildCallStatement(plan);
  }
}

function buildReadStatement(plan: ReadPlan): Sql {
  const kept = plan.keyset ? [sql`${RESULT_CTE} as (${keptPageRows(plan.keptPages)})`] : NO_CTES;
  return buildResponseRow(plan, buildSelect(plan.rows), kept, positionColumns(plan));
}

function buildCallStatement(plan: CallPlan): Sql {
  return buildResponseRow(plan, buildSelect(plan.rows), resultCte(plan), positionColumns(plan));
}

function resultCte({ call, result }: CallPlan): Sql[] {
  return result ? [sql`${RESULT_CTE} as (${buildCall(call, result)})`] : [];
}

function buildWriteStatement(plan: WritePlan): Sql {
  const { change, result, location, body, rows } = plan;
  const written = [sql`${RESULT_CTE} as (${buildChange(change, result)})`];
  const merges = change.kind === "insert" && change.conflict?.resolution === "merge";
  const locationValues = location && location.length > 0 ? locationColumn(location) : sql`null`;
  const inserted = merges ? readSetting("pgrst.inserted") : sql`null`;
  const returnedRows = body.kind === "none" ? sql`select from ${RESULT_CTE}` : buildSelect(rows);
  return buildResponseRow(plan, returnedRows, written, [locationValues, inserted]);
}

const NO_CTES: readonly Sql[] = [];

/** `rows` are called "_", and "page" where they are read twice. */
function buildResponseRow(plan: Plan, rows: Sql, before: readonly Sql[], more: readonly Sql[]): Sql {
  const isPage = plan.body.kind === "csv";
  const tables = isPage ? [...before, sql`"page" as (${rows})`] : before;
  const columns = [
    bodyColumn(plan.body),
    rowCountColumn(plan),
    totalColumn(plan.total, plan.keyset?.all ?? plan.rows),
    readSetting("response.headers"),
    readSetting("response.status"),
    ...more,
    ...guardColumns(plan.guards),
  ];
  const list = sql`select ${join(columns, ", ")} from ${isPage ? sql`"page"` : sql`(${rows})`} "_"`;
  return withCtes(tables, list);
}

/** For HEAD nobody looks at what a function gives. It is called all the same: it may refuse, or say a header. */
function rowCountColumn(plan: Plan): Sql {
  const isUnseen = plan.kind === "call" && plan.call.isScalar && plan.body.kind === "none";
  return isUnseen ? sql`count(${ROW})` : sql`count(*)`;
}

function withCtes(tables: readonly Sql[], statement: Sql): Sql {
  return tables.length > 0 ? sql`with ${join(tables, ", ")} ${statement}` : statement;
}

function positionColumns({ keyset: page, rows }: ReadPlan | CallPlan): Sql[] {
  return page ? [positionColumn(rows)] : [];
}

function guardColumns(all: readonly RowCountGuard[]): Sql[] {
  return all.length > 0 ? [guardColumn(all)] : [];
}

function totalColumn(total: TotalPlan, rows: SelectPlan): Sql {
  if (total.kind !== "counted") return sql`null`;
  if (total.most === null && !rows.grouped) return sql`(select count(*)${fromClause(rows)}${whereClause(rows)})`;
  const most = total.most === null ? NOTHING : sql` limit ${integer(total.most)}`;
  return sql`(select count(*) from (${matchingRows(rows)}${most}) "_")`;
}

/** A row for each that there is, without what it takes to show it. */
function matchingRows(rows: SelectPlan): Sql {
  return rows.grouped ? buildUnorderedSelect(rows) : sql`select 1${fromClause(rows)}${whereClause(rows)}`;
}

/** Read after everything else has run, functions and triggers included. After its first use a setting is empty, not null. */
function readSetting(name: string): Sql {
  return sql`nullif(current_setting(${literal(name)}, true), '')`;
}

/** The values of the columns, as JSON has them, when one row was written. */
function locationColumn(columns: readonly string[]): Sql {
  const values = columns.map((name) => sql`row_to_json(${RESULT_CTE}.*)->>${literal(name)}`);
  return sql`case when count(*) = 1 then (select json_build_array(${join(values, ", ")}) from ${RESULT_CTE}) end`;
}

const EXPLAIN_OPTIONS = {
  analyze: sql`analyze`,
  verbose: sql`verbose`,
  settings: sql`settings`,
  buffers: sql`buffers`,
  wal: sql`wal`,
};

function explainPrefix(format: ResponseFormat): Sql {
  if (format.kind !== "plan") return NOTHING;
  const form = format.as === "json" ? sql`format json` : sql`format text`;
  return sql`explain (${join([form, ...format.options.map((option) => EXPLAIN_OPTIONS[option])], ", ")}) `;
}

/**
 * Nothing that SQL offers everywhere raises an error of one's own, and what was written is to be undone. So a setting
 * is asked for that there is not: its name says what is wrong, and comes back in the message (42704).
 */
function guardColumn(guards: readonly RowCountGuard[]): Sql {
  const cases = guards.map(({ code, rows, count }) => {
    const isWrong = rows === "exactly" ? sql`count(*) <> ${integer(count)}` : sql`count(*) > ${integer(count)}`;
    return sql`when ${isWrong} then current_setting(${literal(`${code} `)} || count(*))`;
  });
  return sql`case ${join(cases, " ")} end`;
}

/** What a guard says by its error; null for all other errors. */
export function guardError(error: unknown): ApiError | null {
  const { code, message } = error as { readonly code?: unknown; readonly message?: unknown };
  const match = code === "42704" && typeof message === "string" ? GUARD_MESSAGE.exec(message)?.groups : undefined;
  if (!match) return null;
  switch (match.code) {
    case "PGRST115":
      return keyMismatch();
    case "PGRST116":
      return notOneRow(Number(match.rows));
    case "PGRST124":
      return tooManyRowsAffected(Number(match.rows));
    default:
      return null;
  }
}

/** No row is found in two ways, and of each way no more are read than a page can have. */
function keptPageRows(ranges: readonly SelectPlan[]): Sql {
  if (ranges.length === 1) return buildSelect(ranges[0]!);
  return join(
    ranges.map((range) => sql`(${buildSelect(range)})`),
    " union all ",
  );
}

/** By what the last row is ordered, as a JSON array of texts, if there is a next one; an empty array if both are in one place. */
function positionColumn(rows: SelectPlan): Sql {
  const limit = rows.limit!;
  const names = rows.order.map((_, index) => `c${index + 1}`);
  const valuesOf = (row: string) => names.map((name) => identifier(row, name));
  const texts = valuesOf("last").map((value) => sql`${value}::text`);
  const isApart = sql`(${join(valuesOf("last"), ", ")}) is distinct from (${join(valuesOf("next"), ", ")})`;
  const place = sql`case when ${isApart} then json_build_array(${join(texts, ", ")}) else '[]' end`;
  return sql`(select ${place} from (${rowAt(limit - 1)}) "last", (${rowAt(limit)}) "next")`;

  function rowAt(offset: number): Sql {
    const outputs = rows.order.map(
      ({ value }, index): OutputColumn => ({ kind: "value", name: names[index]!, value, isAggregate: false }),
    );
    return buildSelect({ ...withOutputs(outputs, rows), limit: 1, offset });
  }
}

/** What stands before the rows of a body, between them and behind them. */
export type BodyFrame = { readonly opening: string; readonly separator: string; readonly closing: string };

/** What is made of the rows that are called "_". */
function bodyColumn(body: BodyPlan): Sql {
  switch (body.kind) {
    case "none":
      return sql`null`;
    case "json":
      return jsonBody(ROW, body.of === "row", body.nulls);
    case "scalar":
      return jsonBody(identifier("_", SCALAR_COLUMN), body.of === "value", body.nulls);
    case "csv":
      return sql`${CSV_HEADER} || chr(10) || ${CSV_LINES}`;
    case "geojson": {
      const feature = sql`${identifier(body.schema, "st_asgeojson")}(${ROW})::json`;
      return sql`json_build_object('type', 'FeatureCollection', 'features', coalesce(json_agg(${feature}), '[]'))`;
    }
    case "aggregate": {
      const { routine, of, isBinary } = body;
      const rows =
        of === "rows"
          ? ROW
          : of === "value"
            ? identifier("_", SCALAR_COLUMN)
            : sql`(${ROW})::${qualifiedIdentifier(of)}`;
      return textBody(sql`${qualifiedIdentifier(routine)}(${rows})`, isBinary);
    }
    case "value":
      return textBody(sql`(array_agg(${identifier("_", SCALAR_COLUMN)}))[1]`, body.isBinary);
  }
}

function jsonBody(what: Sql, isOne: boolean, nulls: "kept" | "stripped"): Sql {
  const all = sql`json_agg(${what})`;
  const json = nulls === "stripped" ? sql`json_strip_nulls(${all})` : all;
  return isOne ? sql`coalesce(${json}->0, 'null')` : sql`coalesce(${json}, '[]')`;
}

/** Bytes travel as hexadecimal digits, whatever `bytea_output` says. */
function textBody(value: Sql, isBinary: boolean): Sql {
  return isBinary ? sql`encode(${value}, 'hex')` : value;
}

/** One of the rows, as it stands in the body. */
function rowText(body: StreamedPlan["body"]): Sql {
  if (body.kind === "csv") return CSV_LINE;
  const json = sql`row_to_json(${ROW})`;
  return body.nulls === "stripped" ? sql`json_strip_nulls(${json})` : json;
}

/** What `bodyOf` writes around the rows. */
export function bodyFrame({ body, rows }: StreamedPlan): BodyFrame {
  if (body.kind === "csv") {
    const names = rows.outputs.flatMap((output) => (output.kind === "value" ? [output.name] : []));
    return { opening: `${names}\n`, separator: "\n", closing: "" };
  }
  return { opening: "[", separator: body.nulls === "stripped" ? "," : ", \n ", closing: "]" };
}

/** What the one row of an answering statement says. */
export type ResponseRow<Cell = string | null> = {
  /** Binary ones as hexadecimal digits; null when none was wanted. */
  readonly body: Cell | null;
  /** Rows read, written or given back. */
  readonly page: number;
  /** Rows that there are, if that was asked and is known without an estimate. */
  readonly total: number | null;
  /** What SQL has to say of the response: JSON, and digits. */
  readonly headers: string | null;
  readonly status: string | null;
  /** The key of the row inserted, in the order of the plan's `location`. */
  readonly location: readonly (string | null)[] | null;
  /** Of the rows written by a merge those that are new. */
  readonly inserted: number | null;
  /** By what the last row of the page is ordered, when others follow; empty when the next one is in the same place. */
  readonly position?: CursorPosition["values"] | null;
};

export function readResponseRow<Cell>(row: ResultRow<Cell>, { total, keyset: isPaged }: Plan): ResponseRow<Cell> {
  const [body, page, counted, headers, status, position, inserted] = row;
  const rows = Number(page);
  const common = {
    body: body ?? null,
    page: rows,
    total: total.kind === "page" ? rows : readNumber(counted),
    headers: readText(headers),
    status: readText(status),
  };
  if (isPaged) return { ...common, location: null, inserted: null, position: readTextList(position) };
  return { ...common, location: readTextList(position), inserted: readNumber(inserted) };
}

function readTextList(cell: unknown): readonly (string | null)[] | null {
  return cell === undefined || cell === null ? null : JSON.parse(String(cell));
}

function readNumber(cell: unknown): number | null {
  return cell === undefined || cell === null ? null : Number(cell);
}

function readText(cell: unknown): string | null {
  return cell === undefined || cell === null ? null : String(cell);
}
