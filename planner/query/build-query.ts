import type { CatalogTable } from "#catalog";
import type { ResultRow } from "#postgres/statement";
import type { ApiError } from "#runtime";
import type { CursorPosition, ResponseFormat } from "../intent/intent.ts";
import {
  type BodyPlan,
  type CallPlan,
  type ChangePlan,
  type KeptColumns,
  keyMismatch,
  notOneRow,
  type Plan,
  type ReadPlan,
  type RowCountGuard,
  type StreamedPlan,
  type TotalPlan,
  tooManyRowsAffected,
  type WritePlan,
  wrongKey,
} from "../plan/plan.ts";
import { type OutputColumn, type SelectPlan, withOutputs } from "../plan/selection.ts";
import { buildCall, SCALAR_COLUMN } from "./build-call.ts";
import { buildSavedRows } from "./build-nested.ts";
import { buildMatchingRows, buildSelect, fromClause, RESULT_CTE, whereClause } from "./build-select.ts";
import { buildUpdate, isByKey, keyGuards } from "./build-update.ts";
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
  TO_MEMBER_TEXT,
} from "./sql.ts";

/** The guard's message without its quotes, which depend on the server's language. */
const GUARD_MESSAGE = /(?<code>PGRST1\d\d) (?<rows>\d+)/;

/** PostgREST's format: a record's text without its parentheses. */
const CSV_LINE = sql`pg_catalog.substring((${ROW})::pg_catalog.text, 2, pg_catalog.length((${ROW})::pg_catalog.text) operator(pg_catalog.-) 2)`;
const CSV_LINES = sql`coalesce(pg_catalog.string_agg(${CSV_LINE}, pg_catalog.chr(10)), '')`;
const CSV_NAMES = sql`select pg_catalog.json_object_keys(pg_catalog.row_to_json("first".*)) as "name" from (select * from "page" limit 1) "first"`;
const CSV_HEADER = sql`(select coalesce(pg_catalog.string_agg("name", ','), '') from (${CSV_NAMES}) "names")`;

/**
 * Builds one statement for the whole response: one row with the columns that `readResponseRow` reads. The plan was
 * checked against the catalogue. For an execution plan the rows are the lines of EXPLAIN.
 */
export function buildQuery(plan: Plan): StatementTemplate {
  return compile(sql`${explainPrefix(plan.format)}${buildStatement(plan)}`);
}

/**
 * Builds a statement with one text per row, for responses that are too long to buffer. The further columns, which
 * `readResponseRow` reads after the number of rows, do not depend on the row: Postgres evaluates them once, with the
 * first row, so after a function has set its settings.
 */
export function buildRowsQuery(plan: StreamedPlan): StatementTemplate {
  const { rows, body, total } = plan;
  const before = plan.kind === "call" ? resultCte(plan) : NO_CTES;
  const sqlResponse = ["response.headers", "response.status"].map((name) => sql`(select ${readSetting(name)})`);
  const columns = join([rowText(body), totalColumn(total, rows), ...sqlResponse], ", ");
  return compile(withCtes(before, sql`select ${columns} from (${buildBodyRows(plan)}) "_"`));
}

/** Builds the EXPLAIN of the rows without their range; the estimate is `Plan Rows` in its JSON. */
export function buildEstimateQuery({ rows, keyset: page }: ReadPlan): StatementTemplate {
  return compile(sql`explain (format json) ${buildMatchingRows(page?.all ?? rows)}`);
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
  const keptRows = plan.keyset ? [sql`${RESULT_CTE} as (${keptPageRows(plan.keptPages)})`] : NO_CTES;
  return buildResponseRow(plan, buildBodyRows(plan), keptRows, positionColumns(plan));
}

function buildCallStatement(plan: CallPlan): Sql {
  return buildResponseRow(plan, buildBodyRows(plan), resultCte(plan), positionColumns(plan));
}

function resultCte({ call, result }: CallPlan): Sql[] {
  return result ? [sql`${RESULT_CTE} as (${buildCall(call, result)})`] : [];
}

function buildWriteStatement(plan: WritePlan): Sql {
  const { change, result, location, body, keepsBodyIn } = plan;
  const counts = change.kind === "insert" && change.conflict?.countsInserted;
  const locationValues = location && location.length > 0 ? locationColumn(location, plan.table) : sql`null`;
  const inserted = counts ? readSetting("pgrst.inserted") : sql`null`;
  const returnedRows = body.kind === "none" ? sql`select from ${RESULT_CTE}` : buildBodyRows(plan);
  const guards = change.kind === "update" && isByKey(change) ? keyGuards(change) : [];
  const kept = keepsBodyIn === undefined ? [] : [keptBody(keepsBodyIn, body)];
  const more = [locationValues, inserted, ...guards, ...kept];
  return buildResponseRow(plan, returnedRows, changeCtes(change, result), more);
}

function keptBody(setting: string, body: BodyPlan): Sql {
  return sql`pg_catalog.set_config(${literal(setting)}, (${bodyColumn(body)})::pg_catalog.text, true)`;
}

/** The last CTE has the written rows. */
function changeCtes(change: ChangePlan, result: KeptColumns): Sql[] {
  if (change.kind === "update") return buildUpdate(change, result);
  const written = change.kind === "nested insert" ? buildSavedRows(change, result) : buildChange(change, result);
  return [sql`${RESULT_CTE} as (${written})`];
}

const NO_CTES: readonly Sql[] = [];

/** Builds the rows of a body. In a record's text, relations are spaced as in PostgREST: by jsonb, which is slower than json. */
function buildBodyRows({ body, rows }: Pick<Plan, "body" | "rows">): Sql {
  if (body.kind !== "csv" && body.kind !== "aggregate") return buildSelect(rows);
  const outputs = rows.outputs.map((output): OutputColumn => {
    if (output.kind === "all" || output.value.kind !== "embedded") return output;
    return { ...output, value: { kind: "cast", of: output.value, type: "jsonb" } };
  });
  return buildSelect({ ...rows, outputs });
}

/** `rows` have the alias "_", or "page" if they are read twice. */
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

/** Counts the rows. For HEAD a function's result is discarded, but the function is still called: it may fail, or set headers. */
function rowCountColumn(plan: Plan): Sql {
  const isUnseen = plan.kind === "call" && plan.call.isScalar && plan.body.kind === "none";
  return isUnseen ? sql`pg_catalog.count(${ROW})` : sql`pg_catalog.count(*)`;
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
  if (total.max === null && !rows.grouped && rows.distinct.length === 0)
    return sql`(select pg_catalog.count(*)${fromClause(rows)}${whereClause(rows)})`;
  const max = total.max === null ? NOTHING : sql` limit ${integer(total.max)}`;
  return sql`(select pg_catalog.count(*) from (${buildMatchingRows(rows)}${max}) "_")`;
}

/** Reads a setting last, after functions and triggers. After its first use a setting is empty, not null. */
function readSetting(name: string): Sql {
  return sql`nullif(pg_catalog.current_setting(${literal(name)}, true), '')`;
}

/** The key of the written row as a JSON array, if one row was written. */
function locationColumn(columns: readonly string[], table: CatalogTable): Sql {
  const values = columns.map((name) => {
    // Filters do not read lists and objects as JSON.
    const isCompound = ["array", "composite"].includes(table.columns.get(name)!.baseType.kind);
    const column = sql`${RESULT_CTE}.${identifier(name)}`;
    return isCompound
      ? sql`${column}::pg_catalog.text`
      : sql`pg_catalog.row_to_json(${RESULT_CTE}.*)${TO_MEMBER_TEXT}${literal(name)}`;
  });
  return sql`case when pg_catalog.count(*) operator(pg_catalog.=) 1 then (select pg_catalog.json_build_array(${join(values, ", ")}) from ${RESULT_CTE}) end`;
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
 * Plain SQL has no function that raises an error, which is needed to roll back. So the guard reads an unknown setting
 * whose name states the error; Postgres repeats it in the message (42704).
 */
function guardColumn(guards: readonly RowCountGuard[]): Sql {
  const cases = guards.map(({ code, rows, count }) => {
    const isWrong =
      rows === "exactly" ? sql`pg_catalog.count(*) <> ${integer(count)}` : sql`pg_catalog.count(*) > ${integer(count)}`;
    return sql`when ${isWrong} then pg_catalog.current_setting(${literal(`${code} `)} || pg_catalog.count(*)::pg_catalog.text)`;
  });
  return sql`case ${join(cases, " ")} end`;
}

/** The error of a guard; null for all other errors. */
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
    case "PGRST197":
    case "PGRST198":
      return wrongKey(match.code, Number(match.rows) - 1);
    default:
      return null;
  }
}

/** The rows of the ranges, which are disjoint; each range is limited to the size of the page. */
function keptPageRows(ranges: readonly SelectPlan[]): Sql {
  if (ranges.length === 1) return buildSelect(ranges[0]!);
  return join(
    ranges.map((range) => sql`(${buildSelect(range)})`),
    " union all ",
  );
}

/** The order values of the last row as a JSON array of texts, if there is a next row; an empty array if both are equal. */
function positionColumn(rows: SelectPlan): Sql {
  const limit = rows.limit!;
  const names = rows.order.map((_, index) => `c${index + 1}`);
  const valuesOf = (row: string) => names.map((name) => identifier(row, name));
  const texts = valuesOf("last").map((value) => sql`${value}::pg_catalog.text`);
  // The rows are compared as in the order: `is distinct from` would take the operators on the search path.
  const isApart = sql`pg_catalog.record_ne(row(${join(valuesOf("last"), ", ")}), row(${join(valuesOf("next"), ", ")}))`;
  const position = sql`case when ${isApart} then pg_catalog.json_build_array(${join(texts, ", ")}) else '[]' end`;
  return sql`(select ${position} from (${rowAt(limit - 1)}) "last", (${rowAt(limit)}) "next")`;

  function rowAt(offset: number): Sql {
    const outputs = rows.order.map(
      ({ value }, index): OutputColumn => ({ kind: "value", name: names[index]!, value, isAggregate: false }),
    );
    return buildSelect({ ...withOutputs(outputs, rows), limit: 1, offset });
  }
}

/** The text before, between and after the rows of a body. */
export type BodyFrame = { readonly opening: string; readonly separator: string; readonly closing: string };

/** The body, built from the rows with the alias "_". */
function bodyColumn(body: BodyPlan): Sql {
  switch (body.kind) {
    case "none":
      return sql`null`;
    case "json":
      return jsonBody(ROW, body.of === "row", body.nulls);
    case "scalar":
      return jsonBody(identifier("_", SCALAR_COLUMN), body.of === "value", body.nulls);
    case "csv":
      return sql`${CSV_HEADER} || pg_catalog.chr(10) || ${CSV_LINES}`;
    case "geojson": {
      const feature = sql`${identifier(body.schema, "st_asgeojson")}(${ROW})::pg_catalog.json`;
      return sql`pg_catalog.json_build_object('type', 'FeatureCollection', 'features', coalesce(pg_catalog.json_agg(${feature}), '[]'))`;
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
      return textBody(sql`(pg_catalog.array_agg(${identifier("_", SCALAR_COLUMN)}))[1]`, body.isBinary);
  }
}

function jsonBody(value: Sql, isOne: boolean, nulls: "kept" | "stripped"): Sql {
  const all = sql`pg_catalog.json_agg(${value})`;
  const json = nulls === "stripped" ? sql`pg_catalog.json_strip_nulls(${all})` : all;
  return isOne ? sql`coalesce(${json}->0, 'null')` : sql`coalesce(${json}, '[]')`;
}

/** Binary bodies are sent as hexadecimal, independent of `bytea_output`. */
function textBody(value: Sql, isBinary: boolean): Sql {
  return isBinary ? sql`pg_catalog.encode(${value}, 'hex')` : value;
}

/** The text of one row in the body. */
function rowText(body: StreamedPlan["body"]): Sql {
  if (body.kind === "csv") return CSV_LINE;
  const json = sql`pg_catalog.row_to_json(${ROW})`;
  return body.nulls === "stripped" ? sql`pg_catalog.json_strip_nulls(${json})` : json;
}

/** The frame of a streamed body, as `bodyColumn` builds it. */
export function bodyFrame({ body, rows }: StreamedPlan): BodyFrame {
  if (body.kind === "csv") {
    const names = rows.outputs.flatMap((output) => (output.kind === "value" ? [output.name] : []));
    return { opening: `${names}\n`, separator: "\n", closing: "" };
  }
  return { opening: "[", separator: body.nulls === "stripped" ? "," : ", \n ", closing: "]" };
}

/** The columns of the response row. */
export type ResponseRow<Cell = string | null> = {
  /** Binary bodies in hexadecimal; null if none was requested. */
  readonly body: Cell | null;
  /** The number of rows read, written or returned. */
  readonly rowCount: number;
  /** The total number of rows, if requested and exact. */
  readonly total: number | null;
  /** The settings response.headers (JSON) and response.status (digits). */
  readonly headers: string | null;
  readonly status: string | null;
  /** The key of the inserted row, in the order of the plan's `location`. */
  readonly location: readonly (string | null)[] | null;
  /** The number of new rows of a merge. */
  readonly inserted: number | null;
  /** The order values of the last row if there is a next page; empty if the next row has the same values. */
  readonly position?: CursorPosition["values"] | null;
};

export function readResponseRow<Cell>(row: ResultRow<Cell>, { total: totalPlan, keyset }: Plan): ResponseRow<Cell> {
  const [body, counted, total, headers, status, position, inserted] = row;
  const rowCount = Number(counted);
  const common = {
    body: body ?? null,
    rowCount,
    total: totalPlan.kind === "page" ? rowCount : readNumber(total),
    headers: readText(headers),
    status: readText(status),
  };
  if (keyset) return { ...common, location: null, inserted: null, position: readTextList(position) };
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
