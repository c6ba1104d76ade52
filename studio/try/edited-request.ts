import type { DescribedFunction, DescribedTable } from "../api/catalog.ts";
import { quoteField } from "../api/field-names.ts";
import { sampleArguments, sampleChange, sampleOfType, sampleRow } from "./sample-values.ts";
import type { Operation, Subject } from "./subjects.ts";

/** A request as it is edited. */
export type EditedRequest = {
  readonly method: string;
  /** With the query string. */
  readonly path: string;
  /** One header per line. */
  readonly headers: string;
  readonly body: string;
};

export const METHODS = ["GET", "HEAD", "POST", "PATCH", "PUT", "DELETE"] as const;

const MAX_COLUMNS = 5;
const JSON_BODY = "Content-Type: application/json";

export type RequestContext = {
  /** Null if several schemas are exposed: a header names the one of the request. */
  readonly onlySchema: string | null;
  readonly tables: readonly DescribedTable[];
};

/** The request of the table interface, `/rest/v1`. */
export function tableRequest(subject: Subject, operation: Operation, context: RequestContext): EditedRequest {
  if (subject.kind === "function") return callRequest(subject.called, context);
  const { table } = subject;
  const path = `/rest/v1/${encodeURIComponent(table.name)}`;
  const profile = profileOf(table, operation, context);
  if (operation === "read") return readRequest(table, path, profile);
  const headers = [...profile, "Prefer: return=representation"];
  if (operation === "insert") return withBody("POST", path, headers, sampleRow(table.columns));
  const address = `${path}?${keyFilter(table)}`;
  if (operation === "delete") return { method: "DELETE", path: address, headers: headers.join("\n"), body: "" };
  return withBody("PATCH", address, headers, sampleChange(table.columns, table.primary_key));
}

/** The request of the plain REST interface, `/api/v1`; null if it has none for the subject. */
export function resourceRequest(subject: Subject, operation: Operation, context: RequestContext): EditedRequest | null {
  if (subject.kind === "function") return actionRequest(subject.called, context);
  const { table } = subject;
  const collection = `/api/v1/${collectionName(table)}`;
  const profile = profileOf(table, operation, context);
  if (operation === "read")
    return { method: "GET", path: `${collection}?limit=5`, headers: profile.join("\n"), body: "" };
  if (operation === "insert") return withBody("POST", collection, profile, sampleRow(table.columns));
  if (table.primary_key.length === 0) return null;
  if (operation === "delete") return { method: "DELETE", path: rowPath(table), headers: profile.join("\n"), body: "" };
  return withBody("PATCH", rowPath(table), profile, sampleChange(table.columns, table.primary_key));
}

/** The lines of the headers; null for a line that is none. */
export function parseHeaders(text: string): Readonly<Record<string, string>> | null {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  const headers = lines.map((line) => /^\s*([\w!#$%&'*+.^`|~-]+)\s*:\s*(.*?)\s*$/.exec(line));
  if (headers.some((header) => header === null)) return null;
  return Object.fromEntries(headers.map((header) => [header![1]!, header![2]!]));
}

/** Whether it changes rows that exist. */
export function changesRows({ method }: Pick<EditedRequest, "method">): boolean {
  return method === "PATCH" || method === "PUT" || method === "DELETE";
}

function readRequest(table: DescribedTable, path: string, headers: readonly string[]): EditedRequest {
  const select = table.columns.slice(0, MAX_COLUMNS).map(({ name }) => encodeURIComponent(quoteField(name)));
  const order = table.primary_key.map((name) => encodeURIComponent(quoteField(name)));
  const parameters = [
    `select=${select.join(",")}`,
    ...(order.length > 0 ? [`order=${order.join(",")}`] : []),
    "limit=5",
  ];
  return { method: "GET", path: `${path}?${parameters.join("&")}`, headers: headers.join("\n"), body: "" };
}

function callRequest(called: DescribedFunction, context: RequestContext): EditedRequest {
  const table = rowArgumentOf(called, context);
  const isComputed = table && called.volatility !== "volatile" && called.inputs.length === 1;
  if (isComputed) return computedColumnRequest(called, table, context);
  const path = `/rest/v1/rpc/${encodeURIComponent(called.name)}`;
  return withBody("POST", path, profileOf(called, "call", context), sampleArguments(called.inputs));
}

/** A function of a row is read as a column of its table. */
function computedColumnRequest(
  called: DescribedFunction,
  table: DescribedTable,
  context: RequestContext,
): EditedRequest {
  const columns = [...table.primary_key, called.name].map((name) => encodeURIComponent(quoteField(name)));
  const path = `/rest/v1/${encodeURIComponent(table.name)}?select=${columns.join(",")}&limit=5`;
  return { method: "GET", path, headers: profileOf(table, "read", context).join("\n"), body: "" };
}

/** A volatile function of a row is an action of the row. */
function actionRequest(called: DescribedFunction, context: RequestContext): EditedRequest | null {
  const table = rowArgumentOf(called, context);
  if (!table || called.volatility !== "volatile" || table.primary_key.length === 0) return null;
  const path = `${rowPath(table)}/${encodeURIComponent(called.name.toLowerCase().replaceAll("_", "-"))}`;
  return withBody("POST", path, profileOf(table, "call", context), sampleArguments(called.inputs.slice(1)));
}

/** The table whose row is the first argument. */
function rowArgumentOf({ inputs }: DescribedFunction, { tables }: RequestContext): DescribedTable | undefined {
  return tables.find(({ schema, name, exposed }) => exposed && inputs[0]?.type === `${schema}.${name}`);
}

function profileOf({ schema }: { readonly schema: string }, operation: Operation, context: RequestContext): string[] {
  if (schema === context.onlySchema) return [];
  return [`${operation === "read" ? "Accept" : "Content"}-Profile: ${schema}`];
}

function rowPath(table: DescribedTable): string {
  return `/api/v1/${collectionName(table)}/${keyValues(table).map(encodeURIComponent).join(",")}`;
}

function withBody(method: string, path: string, headers: readonly string[], body: unknown): EditedRequest {
  return { method, path, headers: [...headers, JSON_BODY].join("\n"), body: JSON.stringify(body, null, 2) };
}

function keyFilter(table: DescribedTable): string {
  const key = table.primary_key.length > 0 ? table.primary_key : table.columns.slice(0, 1).map(({ name }) => name);
  const values = keyValues(table);
  return key
    .map((name, index) => `${encodeURIComponent(quoteField(name))}=eq.${encodeURIComponent(values[index] ?? "1")}`)
    .join("&");
}

function keyValues({ primary_key, columns }: DescribedTable): string[] {
  return primary_key.map((name) => {
    const column = columns.find((each) => each.name === name);
    return String(sampleOfType(column?.base_type ?? "integer", column?.labels));
  });
}

/** In lower case with hyphens, or as the comment says: `@address old-name`. */
function collectionName({ name, comment }: DescribedTable): string {
  const [, address] = /(?:^|\n)@address\s+(\S+)/.exec(comment ?? "") ?? [];
  return (
    address ??
    encodeURIComponent(
      name
        .toLowerCase()
        .replace(/[^\p{L}\p{N}]+/gu, "-")
        .replace(/^-|-$/g, ""),
    )
  );
}
