import type { Body } from "../plan/format.ts";
import type { LongPlan } from "../plan/long.ts";
import { SCALAR } from "./call.ts";
import { identifier, qualified, ROW, type Sql, sql } from "./sql.ts";

/** What stands before the rows of a body, between them and behind them. */
export type Frame = { readonly opening: string; readonly separator: string; readonly closing: string };

/** What is made of the rows that are called "_". */
export function bodyOf(body: Body): Sql {
  switch (body.kind) {
    case "none":
      return sql`null`;
    case "json":
      return jsonOf(ROW, body.of === "row", body.nulls);
    case "scalar":
      return jsonOf(identifier("_", SCALAR), body.of === "value", body.nulls);
    case "csv":
      return sql`${CSV_HEADER} || chr(10) || ${CSV_LINES}`;
    case "geojson": {
      const feature = sql`${identifier(body.schema, "st_asgeojson")}(${ROW})::json`;
      return sql`json_build_object('type', 'FeatureCollection', 'features', coalesce(json_agg(${feature}), '[]'))`;
    }
    case "aggregate": {
      const { routine, of, isBinary } = body;
      const rows = of === "rows" ? ROW : of === "value" ? identifier("_", SCALAR) : sql`(${ROW})::${qualified(of)}`;
      return textOf(sql`${qualified(routine)}(${rows})`, isBinary);
    }
    case "value":
      return textOf(sql`(array_agg(${identifier("_", SCALAR)}))[1]`, body.isBinary);
  }
}

function jsonOf(what: Sql, isOne: boolean, nulls: "kept" | "stripped"): Sql {
  const all = sql`json_agg(${what})`;
  const json = nulls === "stripped" ? sql`json_strip_nulls(${all})` : all;
  return isOne ? sql`coalesce(${json}->0, 'null')` : sql`coalesce(${json}, '[]')`;
}

/** Bytes travel as hexadecimal digits, whatever `bytea_output` says. */
function textOf(value: Sql, isBinary: boolean): Sql {
  return isBinary ? sql`encode(${value}, 'hex')` : value;
}

/** One of the rows, as it stands in the body. */
export function lineOf(body: LongPlan["body"]): Sql {
  if (body.kind === "csv") return CSV_LINE;
  const json = sql`row_to_json(${ROW})`;
  return body.nulls === "stripped" ? sql`json_strip_nulls(${json})` : json;
}

/** What `bodyOf` writes around the rows. */
export function frameOf({ body, rows }: LongPlan): Frame {
  if (body.kind === "csv") {
    const names = rows.outputs.flatMap((output) => (output.kind === "value" ? [output.name] : []));
    return { opening: `${names}\n`, separator: "\n", closing: "" };
  }
  return { opening: "[", separator: body.nulls === "stripped" ? "," : ", \n ", closing: "]" };
}

/** As PostgREST writes it: a record's text without its parentheses. */
const CSV_LINE = sql`substring((${ROW})::text, 2, length((${ROW})::text) - 2)`;
const CSV_LINES = sql`coalesce(string_agg(${CSV_LINE}, chr(10)), '')`;
const CSV_NAMES = sql`select json_object_keys(row_to_json("first".*)) as "name" from (select * from "page" limit 1) "first"`;
const CSV_HEADER = sql`(select coalesce(string_agg("name", ','), '') from (${CSV_NAMES}) "names")`;
