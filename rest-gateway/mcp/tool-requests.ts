import type { Routine } from "#catalog";
import { type GatewayRequest, TABLE_PREFIX } from "#http";
import { RESERVED_NAMES, type VisibleTable } from "#rest-gateway/openapi/schemas";
import { isExactNumber, isJsonObject, type JsonObject, toAddressText } from "#runtime/json";
import type { TableVerb } from "./surface.ts";
import { type NamedColumns, OPERATORS } from "./tool-schemas.ts";

/** A request of the table interface. */
export type TableRequestParts = Pick<GatewayRequest, "method" | "path" | "rawQuery"> & {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
};

/** Arguments that cannot be converted to a request. The message says what to send instead. */
export class ArgumentError extends Error {
  override name = "ArgumentError";
}

export function tableRequest(
  verb: TableVerb,
  { table, selectable, insertable, updatable }: VisibleTable,
  given: JsonObject,
  maxRows: number,
): TableRequestParts {
  checkNames(given, ARGUMENTS[verb]);
  const columns = selectable.map(({ name }) => name);
  const path = `${TABLE_PREFIX}/${encodeURIComponent(table.name)}`;
  const conditions = conditionParameters(given.where, columns);
  if (verb === "read") {
    const limit = readInteger(given.limit, "limit", 1, maxRows) ?? Math.min(maxRows, DEFAULT_ROWS);
    const parameters = [
      ["select", selectParameter(given.columns, columns)],
      ...conditions,
      ...orderParameters(given.order, columns, table.primaryKey),
      ["limit", String(limit)],
      ["offset", String(readInteger(given.offset, "offset", 0) ?? 0)],
    ];
    return {
      method: "GET",
      path,
      rawQuery: queryOf(parameters),
      headers: { "accept-profile": table.schema },
      body: null,
    };
  }
  if (verb !== "insert" && conditions.length === 0) {
    throw new ArgumentError("`where` must have a condition: without one, all rows would be changed.");
  }
  const returns = columns.length > 0 ? "representation" : "minimal";
  const prefer = [
    `return=${returns}`,
    "count=exact",
    ...(verb === "insert" ? [] : ["handling=strict", `max-affected=${maxRows}`]),
  ];
  const rawQuery = queryOf([
    ...(columns.length > 0 ? [["select", selectParameter(undefined, columns)]] : []),
    ...conditions,
  ]);
  const headers = { "content-profile": table.schema, "content-type": "application/json", prefer: prefer.join(", ") };
  switch (verb) {
    case "insert":
      return {
        method: "POST",
        path,
        rawQuery,
        headers,
        body: JSON.stringify(readRows(given.rows, insertable, maxRows)),
      };
    case "update":
      return { method: "PATCH", path, rawQuery, headers, body: JSON.stringify(readValues(given.set, updatable)) };
    case "delete":
      return { method: "DELETE", path, rawQuery, headers, body: null };
  }
}

export function routineRequest(
  { schema, name, returns }: Routine,
  given: JsonObject,
  maxRows: number,
): TableRequestParts {
  return {
    method: "POST",
    path: `${TABLE_PREFIX}/rpc/${encodeURIComponent(name)}`,
    rawQuery: returns.set ? queryOf([["limit", String(maxRows)]]) : "",
    headers: { "content-profile": schema, "content-type": "application/json" },
    body: JSON.stringify(given),
  };
}

const DEFAULT_ROWS = 50;

const ARGUMENTS: Readonly<Record<TableVerb, readonly string[]>> = {
  read: ["columns", "where", "order", "limit", "offset"],
  insert: ["rows"],
  update: ["where", "set"],
  delete: ["where"],
};

export function checkNames(given: JsonObject, allowed: readonly string[]): void {
  const unknown = Object.keys(given).find((name) => !allowed.includes(name));
  if (unknown === undefined) return;
  throw new ArgumentError(`There is no argument \`${unknown}\`. Arguments: ${allowed.join(", ")}.`);
}

export function readInteger(
  value: unknown,
  name: string,
  least: number,
  most = Number.MAX_SAFE_INTEGER,
): number | null {
  if (value === undefined || value === null) return null;
  if (Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most) return value as number;
  const range = most === Number.MAX_SAFE_INTEGER ? `at least ${least}` : `from ${least} to ${most}`;
  throw new ArgumentError(`\`${name}\` must be an integer, ${range}.`);
}

type RequestParameters = readonly (readonly string[])[];

function queryOf(parameters: RequestParameters): string {
  return parameters.map(([name, value]) => `${encodeURIComponent(name!)}=${encodeURIComponent(value!)}`).join("&");
}

function selectParameter(chosen: unknown, columns: readonly string[]): string {
  if (chosen === undefined || chosen === null) return columns.map(toName).join(",");
  const names = readList(chosen, "columns");
  return (names.length === 0 ? columns : names.map((name) => readColumn(name, columns))).map(toName).join(",");
}

/** Orders by the primary key unless an order is given, because pages need a stable order. */
function orderParameters(order: unknown, columns: readonly string[], key: readonly string[]): RequestParameters {
  const terms = order === undefined || order === null ? [] : readList(order, "order");
  if (terms.length === 0) {
    const isReadable = key.length > 0 && key.every((name) => columns.includes(name));
    return isReadable ? [["order", key.map(toName).join(",")]] : [];
  }
  const parts = terms.map((term) => {
    if (!isJsonObject(term))
      throw new ArgumentError('`order` is a list such as [{"column": "id", "descending": true}].');
    checkNames(term, ["column", "descending"]);
    return toName(readColumn(term.column, columns)) + (term.descending === true ? ".desc" : "");
  });
  return [["order", parts.join(",")]];
}

function conditionParameters(where: unknown, columns: readonly string[]): RequestParameters {
  if (where === undefined || where === null) return [];
  return readList(where, "where").map((condition) => {
    if (!isJsonObject(condition)) {
      throw new ArgumentError('`where` is a list such as [{"column": "id", "operator": "eq", "value": 1}].');
    }
    checkNames(condition, ["column", "operator", "value"]);
    const column = readColumn(condition.column, columns);
    const isPlain = SIMPLE_NAME.test(column) && !RESERVED_NAMES.has(column);
    const test = conditionOf(condition.operator, condition.value);
    if (isPlain) return [column, test.plain];
    return ["and", `(${toName(column)}.${test.nested})`];
  });
}

/** Returns a condition as the value of a parameter, and as an item of a list, in which the value is quoted. */
function conditionOf(operator: unknown = "eq", value: unknown): { readonly plain: string; readonly nested: string } {
  const known = OPERATORS.find((each) => each === operator);
  if (known === undefined) throw new ArgumentError(`\`operator\` must be one of ${OPERATORS.join(", ")}.`);
  if (value === null || known === "is") {
    if (known !== "eq" && known !== "neq" && known !== "is") {
      throw new ArgumentError(`\`${known}\` needs a value; null is compared with \`is\`.`);
    }
    if (value !== null && typeof value !== "boolean") throw new ArgumentError("`is` takes null, true or false.");
    const both = `${known === "neq" ? "not." : ""}is.${value}`;
    return { plain: both, nested: both };
  }
  if (known === "in") {
    const list = readList(value, "value").map((each) => quote(scalarText(each)));
    const both = `in.(${list.join(",")})`;
    return { plain: both, nested: both };
  }
  const text = known === "cs" || known === "cd" ? containmentText(value) : scalarText(value);
  return { plain: `${known}.${text}`, nested: `${known}.${quote(text)}` };
}

function scalarText(value: unknown): string {
  if (typeof value === "string") return value;
  if (typeof value === "number" || typeof value === "boolean" || isExactNumber(value)) return toAddressText(value);
  throw new ArgumentError("`value` must be a string, a number, a boolean or null; for `in` a list of them.");
}

/** Converts a list to a Postgres array, and an object to JSON. */
function containmentText(value: unknown): string {
  if (Array.isArray(value)) return `{${value.map((each) => quote(scalarText(each))).join(",")}}`;
  return isJsonObject(value) ? JSON.stringify(value) : scalarText(value);
}

function readColumn(name: unknown, columns: readonly string[]): string {
  if (typeof name === "string" && columns.includes(name)) return name;
  throw new ArgumentError(
    `There is no column ${JSON.stringify(name)} that you may read. Columns: ${columns.join(", ")}.`,
  );
}

function readRows(rows: unknown, columns: NamedColumns, maxRows: number): readonly unknown[] {
  const list = readList(rows, "rows");
  if (list.length === 0 || list.length > maxRows) throw new ArgumentError(`\`rows\` must have 1 to ${maxRows} rows.`);
  if (!list.every(isJsonObject)) throw new ArgumentError("`rows` is a list of objects, by column.");
  for (const row of list) checkColumns(row, columns);
  return list;
}

function readValues(values: unknown, columns: NamedColumns): JsonObject {
  if (!isJsonObject(values) || Object.keys(values).length === 0) {
    throw new ArgumentError("`set` is an object with the new values, by column.");
  }
  checkColumns(values, columns);
  return values;
}

/** Rejects other names than columns: the table interface would also accept rows of related tables, for which the grants may not suffice. */
function checkColumns(row: JsonObject, columns: NamedColumns): void {
  const names = columns.map(({ name }) => name);
  const unknown = Object.keys(row).find((name) => !names.includes(name));
  if (unknown === undefined) return;
  const listed = names.join(", ");
  throw new ArgumentError(`There is no column ${JSON.stringify(unknown)} that you may write. Columns: ${listed}.`);
}

function readList(value: unknown, name: string): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw new ArgumentError(`\`${name}\` must be a list.`);
}

const SIMPLE_NAME = /^[a-z_][a-z0-9_]*$/i;

function toName(name: string): string {
  return SIMPLE_NAME.test(name) ? name : quote(name);
}

function quote(text: string): string {
  return `"${text.replaceAll(/[\\"]/g, (character) => `\\${character}`)}"`;
}
