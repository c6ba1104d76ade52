import type { QualifiedName } from "#catalog";
import { quotedName } from "#postgres/client";
import { ApiError } from "#runtime";
import type { BindParameter } from "../intent/intent.ts";

/** The filters of a related table are repeated wherever it is named, so that a short request could have a statement of any length. */
const MAX_STATEMENT_CHARACTERS = 4_000_000;

/** Type names that are SQL keywords: quoted they would not be found, or mean another type. */
const SQL_TYPE_KEYWORDS: ReadonlyMap<string, Sql> = new Map([
  ["bigint", sql`bigint`],
  ["bit", sql`bit`],
  ["bit varying", sql`bit varying`],
  ["boolean", sql`boolean`],
  ["char", sql`character`],
  ["char varying", sql`character varying`],
  ["character", sql`character`],
  ["character varying", sql`character varying`],
  ["dec", sql`numeric`],
  ["decimal", sql`numeric`],
  ["double precision", sql`double precision`],
  ["float", sql`double precision`],
  ["int", sql`integer`],
  ["integer", sql`integer`],
  ["national char", sql`character`],
  ["national character", sql`character`],
  ["nchar", sql`character`],
  ["real", sql`real`],
  ["smallint", sql`smallint`],
  ["time with time zone", sql`time with time zone`],
  ["time without time zone", sql`time without time zone`],
  ["timestamp with time zone", sql`timestamp with time zone`],
  ["timestamp without time zone", sql`timestamp without time zone`],
]);

/** A fragment of SQL. Only the functions of this file create it, so external text is always quoted. */
export type Sql = { readonly parts: readonly (string | BindParameter | Sql)[] };

/** The text of a statement and its parameters, without values. */
export type StatementTemplate = { readonly text: string; readonly parameters: readonly BindParameter[] };

/** Template tag for SQL; interpolated values must be SQL fragments. */
export function sql(strings: TemplateStringsArray, ...inserted: readonly Sql[]): Sql {
  const parts: (string | Sql)[] = [];
  for (let index = 0; index < strings.length; index++) {
    parts.push(strings[index]!);
    if (index < inserted.length) parts.push(inserted[index]!);
  }
  return { parts };
}

export const NOTHING: Sql = { parts: [] };

/** The whole row with the alias "_", even if it has a column of that name. */
export const ROW: Sql = sql`"_".*`;

/** `"name"` or `"name"."part"` */
export function identifier(...names: readonly string[]): Sql {
  return { parts: [quotedName(...names)] };
}

export function qualifiedIdentifier({ schema, name }: QualifiedName): Sql {
  return identifier(schema, name);
}

/** `operator("schema".=)`; null: the operator on the search path. */
export function operatorIn(schema: string | null, operator: Sql): Sql {
  return schema === null ? operator : sql`operator(${identifier(schema)}.${operator})`;
}

/**
 * `->` and `->>` of json and jsonb with a key. The key is a literal without a type, for which Postgres prefers any operator whose operands
 * are both json.
 */
export const TO_MEMBER: Sql = sql` operator(pg_catalog.->) `;
export const TO_MEMBER_TEXT: Sql = sql` operator(pg_catalog.->>) `;

/** Safe for both values of `standard_conforming_strings`. */
export function literal(text: string): Sql {
  const quoted = `'${text.replaceAll("'", "''")}'`;
  return { parts: [text.includes("\\") ? ` E${quoted.replaceAll("\\", "\\\\")}` : quoted] };
}

export function integer(value: number): Sql {
  return { parts: [String(Math.trunc(value))] };
}

/** SQL text from the catalogue: the name of a type, a default. */
export function catalogSql(text: string): Sql {
  return { parts: [text] };
}

export function parameter(source: BindParameter): Sql {
  return { parts: [source] };
}

export function join(pieces: readonly Sql[], separator: string): Sql {
  return { parts: pieces.flatMap((piece, index) => (index === 0 ? [piece] : [separator, piece])) };
}

/** Numbers the parameters; equal ones share a number. */
export function compile(whole: Sql): StatementTemplate {
  const numbers = new Map<string, number>();
  const parameters: BindParameter[] = [];
  const parameterNumber = (added: BindParameter): number => {
    const key = parameterKey(added);
    const known = numbers.get(key);
    if (known !== undefined) return known;
    const number = parameters.push(added);
    numbers.set(key, number);
    return number;
  };
  let text = "";
  const render = ({ parts }: Sql): void => {
    for (const part of parts) {
      if (typeof part === "string") text += part;
      else if ("parts" in part) render(part);
      else text += `$${parameterNumber(part)}`;
    }
    if (text.length > MAX_STATEMENT_CHARACTERS) throw statementTooLong();
  };
  render(whole);
  return { text, parameters };
}

/** Equal parameters have equal keys. */
function parameterKey(parameter: BindParameter): string {
  switch (parameter.kind) {
    case "operand":
    case "position":
      return `${parameter.kind} ${parameter.index}`;
    case "column":
      return `column ${parameter.name}`;
    case "argument":
      return `argument ${parameter.all} ${parameter.name}`;
    default:
      return parameter.kind;
  }
}

function statementTooLong(): ApiError {
  return new ApiError("invalid", "54001", "The request is too complex: its statement would be too long", {
    hint: "Name a related table in fewer conditions and orders, or filter it by fewer conditions.",
  });
}

/** A type name from a client, case-insensitive as in SQL; Postgres rejects an unknown one (42704). */
export function typeName(written: string): Sql {
  const name = written.trim().replace(/\s+/g, " ").toLowerCase();
  return SQL_TYPE_KEYWORDS.get(name) ?? identifier(name);
}
