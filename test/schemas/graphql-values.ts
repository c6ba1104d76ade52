import type { Column } from "./described.ts";
import { canonical, isRecord, type Json, WrittenNumber } from "./exact.ts";

/** A value of SQL in a form that it shares with GraphQL's: numbers and keys as texts, times without zeros that say nothing. */
export function asColumn(column: Column, value: Json): Json {
  if (value === null || value === undefined) return null;
  if (Array.isArray(value))
    return value.map((each) => asColumn({ ...column, baseType: column.baseType.replace(/\[\]$/, "") }, each));
  if (column.labels) return enumName(String(value));
  switch (column.baseType) {
    case "json":
    case "jsonb":
      return value;
    case "bytea":
      return Buffer.from(String(value).slice(2), "hex").toString("base64");
    case "interval":
      return intervalOf(String(value));
    case "timestamp with time zone":
    case "timestamp without time zone":
    case "time without time zone":
      return timeOf(String(value));
    default:
      return value instanceof WrittenNumber ? canonical(value) : value;
  }
}

/** The same of a value that GraphQL has told. */
export function asToldByGraphQL(column: Column, value: Json | undefined): Json {
  if (value === undefined) return "missing";
  if (value === null) return null;
  if (Array.isArray(value)) return value.map((each) => asToldByGraphQL(column, each));
  if (column.labels) return enumName(String(value));
  switch (column.baseType.replace(/\[\]$/, "")) {
    case "json":
    case "jsonb":
    case "bytea":
      return value;
    case "interval":
      return isRecord(value) ? intervalParts((part) => Number(canonical(value[part] ?? "0"))) : value;
    case "timestamp with time zone":
    case "timestamp without time zone":
    case "time without time zone":
      return timeOf(String(value));
    case "smallint":
    case "integer":
    case "bigint":
    case "numeric":
    case "real":
    case "double precision":
      return plain(value);
    default:
      return value instanceof WrittenNumber ? canonical(value) : value;
  }
}

function plain(value: Json): Json {
  return canonical(typeof value === "string" && /^-?\d+(\.\d+)?$/.test(value) ? new WrittenNumber(value) : value);
}

function enumName(label: string): string {
  return label.toLowerCase().replace(/[^\p{L}\p{N}]/gu, "");
}

function timeOf(text: string): string {
  return text
    .replace(/(\.\d*?)0+(?=$|[+\-Z])/, "$1")
    .replace(/\.(?=$|[+\-Z])/, "")
    .replace(/\+00:00$/, "Z");
}

function intervalOf(text: string): Json {
  const of = (unit: string) => Number(new RegExp(`(-?\\d+) ${unit}`).exec(text)?.[1] ?? 0);
  const [, hours = "0", minutes = "0", seconds = "0"] = /(\d+):(\d+):([\d.]+)/.exec(text) ?? [];
  const parts: Record<string, number> = {
    years: of("years?"),
    months: of("mons?"),
    days: of("days?"),
    hours: Number(hours),
    minutes: Number(minutes),
    seconds: Number(seconds),
  };
  return intervalParts((part) => parts[part]!);
}

function intervalParts(of: (part: string) => number): string {
  return ["years", "months", "days", "hours", "minutes", "seconds"].map((part) => `${of(part)} ${part}`).join(" ");
}
