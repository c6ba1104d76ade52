import type { RequestTarget } from "./curl.ts";
import { type EditedRequest, parseHeaders } from "./edited-request.ts";

type Call = { readonly name: string; readonly arguments: readonly string[] };

const PREFIX = /^\/rest\/v1\/(?<rpc>rpc\/)?(?<name>[^/?]+)$/;
/** Operators that have a method of the same name. */
const OPERATORS: ReadonlySet<string> = new Set(["eq", "neq", "gt", "gte", "lt", "lte", "like", "ilike", "is", "match"]);
const OTHER_OPERATORS: Readonly<Record<string, string>> = { cs: "contains", cd: "containedBy", ov: "overlaps" };
const NUMBER = /^-?(0|[1-9]\d{0,14})(\.\d{1,6})?$/;

/** The request of the table interface as code for supabase-js; null if it is no request of that interface. */
export function toSupabaseJs(request: EditedRequest, { origin, token }: RequestTarget): string | null {
  const [path = "", query = ""] = request.path.split("?", 2);
  const { rpc, name } = PREFIX.exec(path)?.groups ?? {};
  const headers = lowerCaseNames(parseHeaders(request.headers) ?? {});
  if (name === undefined) return null;
  const parameters = new URLSearchParams(query);
  const start = rpc ? callFunction(request, name, parameters) : startQuery(request, name, parameters, headers);
  const schema = headers["accept-profile"] ?? headers["content-profile"];
  const calls = [
    ...(schema ? [toCall("schema", schema)] : []),
    ...start,
    ...filterCalls(parameters, rpc !== undefined && request.method === "GET"),
    ...rangeCalls(parameters),
    ...(headers.accept?.startsWith("application/vnd.pgrst.object") ? [toCall("single")] : []),
    ...(headers.accept?.startsWith("text/csv") ? [toCall("csv")] : []),
  ];
  const chain = calls.map((call) => `\n  .${call.name}(${call.arguments.join(", ")})`).join("");
  return `import { createClient } from "@supabase/supabase-js";

const supabase = createClient(${text(origin)}, ${token === null ? "TOKEN" : text(token)});
const { data, error } = await supabase${chain};`;
}

function startQuery(
  { method, body }: EditedRequest,
  name: string,
  parameters: URLSearchParams,
  headers: Readonly<Record<string, string>>,
): Call[] {
  const from = toCall("from", decodeURIComponent(name));
  const prefer = headers.prefer ?? "";
  const [, count] = /count=(exact|planned|estimated)/.exec(prefer) ?? [];
  const columns = parameters.get("select");
  if (method === "GET" || method === "HEAD") {
    const options = [...(count ? [`count: ${text(count)}`] : []), ...(method === "HEAD" ? ["head: true"] : [])];
    const select = [text(columns ?? "*"), ...(options.length > 0 ? [`{ ${options.join(", ")} }`] : [])];
    return [from, { name: "select", arguments: select }];
  }
  const selected = /return=representation/.test(prefer)
    ? [toCall("select", ...(columns === null ? [] : [columns]))]
    : [];
  if (method === "DELETE") return [from, toCall("delete"), ...selected];
  if (method === "PATCH") return [from, { name: "update", arguments: [indent(body)] }, ...selected];
  const isUpsert = method === "PUT" || /resolution=merge-duplicates/.test(prefer);
  return [from, { name: isUpsert ? "upsert" : "insert", arguments: [indent(body)] }, ...selected];
}

function callFunction({ method, body }: EditedRequest, name: string, parameters: URLSearchParams): Call[] {
  const called = text(decodeURIComponent(name));
  if (method !== "GET") {
    const isEmpty = /^\s*(\{\s*\})?\s*$/.test(body);
    return [{ name: "rpc", arguments: isEmpty ? [called] : [called, indent(body)] }];
  }
  const given = [...parameters].filter(([parameter]) => !isRangeOrSelect(parameter));
  const values = JSON.stringify(Object.fromEntries(given));
  return [{ name: "rpc", arguments: [called, values, "{ get: true }"] }];
}

function filterCalls(parameters: URLSearchParams, isFunction: boolean): Call[] {
  if (isFunction) return [];
  return [...parameters].filter(([name]) => !isRangeOrSelect(name)).map(([name, value]) => filterCall(name, value));
}

function filterCall(name: string, condition: string): Call {
  if (name === "or") return toCall("or", condition.replace(/^\((.*)\)$/s, "$1"));
  const [, not, operator = "eq", value = ""] = /^(not\.)?([a-z]+(?:\([^)]*\))?)\.(.*)$/s.exec(condition) ?? [];
  const column = text(name);
  if (not) return { name: "not", arguments: [column, text(operator), literal(value, operator)] };
  if (operator === "in") return { name: "in", arguments: [column, listLiteral(value)] };
  if (OPERATORS.has(operator)) return { name: operator, arguments: [column, literal(value, operator)] };
  const other = OTHER_OPERATORS[operator];
  if (other) return { name: other, arguments: [column, text(value)] };
  return { name: "filter", arguments: [column, text(operator), text(value)] };
}

function rangeCalls(parameters: URLSearchParams): Call[] {
  const orders = (parameters.get("order") ?? "").split(",").filter(Boolean).map(orderCall);
  const limit = Number(parameters.get("limit") ?? Number.NaN);
  const offset = Number(parameters.get("offset") ?? 0);
  if (Number.isNaN(limit)) return orders;
  if (offset === 0) return [...orders, { name: "limit", arguments: [String(limit)] }];
  return [...orders, { name: "range", arguments: [String(offset), String(offset + limit - 1)] }];
}

function orderCall(order: string): Call {
  const [, column = order, suffix = ""] = /^(.*?)((?:\.(?:asc|desc|nullsfirst|nullslast))*)$/.exec(order) ?? [];
  const options = [
    ...(suffix.includes(".desc") ? ["ascending: false"] : []),
    ...(suffix.includes(".nulls") ? [`nullsFirst: ${suffix.includes(".nullsfirst")}`] : []),
  ];
  const name = column.replace(/^"(.*)"$/, "$1");
  return { name: "order", arguments: [text(name), ...(options.length > 0 ? [`{ ${options.join(", ")} }`] : [])] };
}

function isRangeOrSelect(name: string): boolean {
  return ["select", "order", "limit", "offset", "columns", "on_conflict"].includes(name);
}

function toCall(name: string, ...values: readonly string[]): Call {
  return { name, arguments: values.map(text) };
}

function literal(value: string, operator: string): string {
  if (operator === "is" && /^(null|true|false)$/.test(value)) return value;
  return NUMBER.test(value) ? value : text(value);
}

/** `(1,2,"a,b")` */
function listLiteral(list: string): string {
  const items = [...list.slice(1, -1).matchAll(/"((?:[^"\\]|\\.)*)"|([^,]+)/g)];
  const values = items.map(([, quoted, plain]) =>
    quoted === undefined ? literal(plain!, "in") : text(quoted.replace(/\\(.)/g, "$1")),
  );
  return `[${values.join(", ")}]`;
}

/** The JSON of a body is also JavaScript. */
function indent(body: string): string {
  return body.trim() === "" ? "{}" : body.trim().replaceAll("\n", "\n  ");
}

function text(value: string): string {
  return JSON.stringify(value);
}

function lowerCaseNames(headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}
