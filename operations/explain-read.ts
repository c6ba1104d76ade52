import pg from "pg";
import type { InterfaceName } from "#accounts/identity";
import { type Catalog, type CatalogTable, findMissingGrants, type Policy, policyCondition } from "#catalog";
import type { Config } from "#config";
import { isPathUnder, notFound, TABLE_PREFIX, toHttpError } from "#http";
import { makeServiceCounters } from "#http/observability";
import { bindRequest, type PreparedRequest } from "#planner";
import type { OrderTerm, SelectedColumn } from "#planner/intent";
import { quotedName } from "#postgres/client";
import type { Statement, StatementContext } from "#postgres/statement";
import {
  findTarget,
  makeReadIntent,
  makeResourcePlanner,
  parentConditions,
  parseAddress,
  type ResourceTarget,
  rowConditions,
  selectEveryField,
} from "#rest-gateway/resource";
import { collectionsOf } from "#rest-gateway/resource/collections";
import { parseListParameters, parseRowParameters, windowOf } from "#rest-gateway/resource/parse";
import { makeTablePlanner, tableParseSettings } from "#rest-gateway/table";
import { NO_BODY, parseTableRequest } from "#rest-gateway/table/parse";
import { ApiError } from "#runtime";
import { explainStatement, inRolledBackTransaction } from "./inspect/explain.ts";

export type ReadExplanation = {
  readonly table: CatalogTable;
  /** The number of rows without pagination, as the caller; `total` counts those without row-level security. */
  readonly visible: number;
  readonly total: number;
  /** True if there are more rows than were compared; the rows with the first keys were. */
  readonly isPartial: boolean;
  /** Some rows that are hidden from the caller, with the result of each policy. */
  readonly hidden: readonly { readonly key: readonly unknown[]; readonly verdicts: readonly PolicyResult[] }[];
  readonly policies: readonly Policy[];
  /** Columns that the role may not read. */
  readonly unreadableColumns: readonly string[];
  /** EXPLAIN ANALYZE of the request. */
  readonly plan: string;
};

type ExplainConnections = {
  readonly catalog: Catalog;
  readonly context: StatementContext;
  /** The login of requests. */
  readonly login: pg.ClientBase;
  readonly owner: pg.ClientBase;
  /** The number of rows to compare; null compares all. */
  readonly maxRows?: number | null;
};

const MAX_HIDDEN = 10;

/** Explains which rows of a request the caller sees, which are hidden, and by which policies. Changes nothing. */
export async function explainRead(
  { table, prepared, keys }: RequestedRows,
  { catalog, context, login, owner, maxRows = null }: ExplainConnections,
): Promise<ReadExplanation> {
  const policies = readPoliciesOf(table, context.role, catalog);
  const unreadableColumns = [...table.columns.keys()].filter(
    (column) => !catalog.hasPrivilege(context.role, "select", table, column),
  );
  const plan = await inRolledBackTransaction(login, context, { asRole: true }, () =>
    explainStatement(login, prepared.statement),
  );
  const { statement } = keys(maxRows === null ? null : maxRows + 1);
  const keysFor = async (client: pg.ClientBase) => toKeys(await bodyOf(client, statement), table.primaryKey.length);
  // Both reads use the order of the keys: the rows that the caller sees among the owner's first rows are also the caller's first.
  const visible = await inRolledBackTransaction(login, context, { asRole: true }, () => keysFor(login));
  const all = await inRolledBackTransaction(owner, context, { asRole: false }, () => keysFor(owner));
  const isPartial = maxRows !== null && all.length > maxRows;
  const compared = isPartial ? all.slice(0, maxRows) : all;
  const visibleKeys = new Set(visible.map((key) => JSON.stringify(key)));
  const hiddenKeys = compared.filter((key) => !visibleKeys.has(JSON.stringify(key)));
  const hiddenRows = await inRolledBackTransaction(owner, context, { asRole: false }, async () => {
    const rows: HiddenRow[] = [];
    if (table.primaryKey.length === 0) return rows;
    for (const key of hiddenKeys.slice(0, MAX_HIDDEN)) rows.push({ key, content: await readRow(key, table, owner) });
    return rows;
  });
  const hidden = await inRolledBackTransaction(login, context, { asRole: true }, async () => {
    const explained: ReadExplanation["hidden"][number][] = [];
    for (const { key, content } of hiddenRows)
      explained.push({ key, verdicts: await evaluatePolicies(content, { table, policies, login }) });
    return explained;
  });
  return {
    table,
    visible: isPartial ? compared.length - hiddenKeys.length : visible.length,
    total: compared.length,
    isPartial,
    hidden,
    policies,
    unreadableColumns,
    plan,
  };
}

async function bodyOf(client: pg.ClientBase, { text, values }: Statement): Promise<string> {
  const { rows } = await client.query<[string]>({ text, values: [...values], rowMode: "array" });
  return rows[0]![0];
}

/** Returns the first keys of the requested rows, in order, as the role of the connection sees them. */
export async function readKeys(client: pg.ClientBase, { table, keys }: RequestedRows, limit: number) {
  return toKeys(await bodyOf(client, keys(limit).statement), table.primaryKey.length);
}

function toKeys(body: string | object, columns: number): unknown[][] {
  const rows = (typeof body === "string" ? JSON.parse(body) : body) as Record<string, unknown>[];
  return rows.map((row) => Array.from({ length: columns }, (_, index) => row[`${KEY_ALIAS}${index}`]));
}

export type PolicyResult = {
  readonly policy: Policy;
  /** Null if the condition is null, which refuses the row too. */
  readonly passes: boolean | null;
};

/** The policies for reads of the role; empty if no policy applies to it. */
export function readPoliciesOf(table: CatalogTable, role: string, catalog: Catalog): readonly Policy[] {
  return table.policies.filter(
    ({ command, roles }) =>
      (command === "all" || command === "select") &&
      roles.some((name) => name === "public" || catalog.hasRole(role, name)),
  );
}

type HiddenRow = {
  readonly key: readonly unknown[];
  /** The row as text; null if it is gone. */
  readonly content: string | null;
};

function readRow(key: readonly unknown[], table: CatalogTable, owner: pg.ClientBase): Promise<string | null> {
  const found = table.primaryKey.map((column, index) => `${quotedName(column)} = $${index + 1}`).join(" and ");
  const text = `select * from ${quotedName(table.schema, table.name)} where ${found}`;
  return readRowAsText({ text, values: key }, owner);
}

export type RowQuery = { readonly text: string; readonly values: readonly unknown[] };

/** Returns the row of a query as text, which any session reads alike; null if there is none. */
export async function readRowAsText({ text, values }: RowQuery, owner: pg.ClientBase): Promise<string | null> {
  await owner.query("set local datestyle = iso; set local intervalstyle = postgres");
  const { rows } = await owner.query<[string]>({
    text: `select (found_row.*)::pg_catalog.text from (${text}) as found_row`,
    values: [...values],
    rowMode: "array",
  });
  return rows[0]?.[0] ?? null;
}

type EvaluatedPolicies = {
  readonly table: CatalogTable;
  readonly policies: readonly Policy[];
  readonly login: pg.ClientBase;
  /** The condition of the policy on such a row. */
  readonly conditionOf?: (policy: Policy) => string;
};

/**
 * Evaluates each policy on a row, which the caller may not see; without a row all results are null. It is done as the caller, because the
 * tables that a policy reads have policies, too.
 */
export async function evaluatePolicies(
  content: string | null,
  { table, policies, login, conditionOf = policyCondition }: EvaluatedPolicies,
): Promise<readonly PolicyResult[]> {
  if (policies.length === 0 || content === null) return policies.map((policy) => ({ policy, passes: null }));
  // The conditions have the form of pg_get_expr, with unqualified columns, or with those of the table's name in subqueries.
  const conditions = policies.map((policy) => `(${conditionOf(policy)})`).join(", ");
  const type = quotedName(table.schema, table.name);
  const { rows } = await login.query<(boolean | null)[]>({
    text: `select ${conditions} from pg_catalog.unnest(array[$1::${type}]) as ${quotedName(table.name)}`,
    values: [content],
    rowMode: "array",
  });
  return policies.map((policy, index) => ({ policy, passes: rows[0]?.[index] ?? null }));
}

function notARead(): ApiError {
  return new ApiError("invalid", "VALIDATION_ERROR", "Ask for the rows of a table or a view.");
}

/** Prefix of aliases for the columns of the key. */
const KEY_ALIAS = "key_of_row_";

/** A cast in the grammar of `select`, in which types have no schema. */
const TEXT_IN_SELECT = "::text";

const JSON_RESPONSE = {
  formats: [{ kind: "media", type: "application/json" }],
  includesBody: true,
  maxAffected: null,
} as const;

/** Plans a read such as `/users?…` or `/api/v1/things/7` for the role. Throws the error that a client would get. */
function readResourceRequest(address: string, { catalog, config, role }: RequestedRowsContext): RequestedRows {
  const { pathname, searchParams } = new URL(address, "http://localhost");
  const parsed = parseAddress(pathname);
  const collections = collectionsOf(catalog, { role, version: Number(parsed.version ?? 1) });
  const target = findTarget(parsed, collections);
  if (!target) throw notFound();
  if (target.action) throw notARead();
  const { collection } = target;
  const { table } = collection;
  const rowsRequest = target.key === null ? requestForList() : requestForRow(target, target.key);
  const intent = makeReadIntent(collection, rowsRequest);
  const planned = makeResourcePlanner(config, makeServiceCounters().plans)(catalog, { role }, intent);
  const prepared = bindRequest(planned, intent);
  const keys = (limit: number | null) => {
    const select = table.primaryKey.length === 0 ? selectEveryField(collection) : table.primaryKey.map(toKey);
    const part = limit === null ? {} : { order: table.primaryKey.map(toKeyOrder), window: { offset: 0, limit } };
    const whole = makeReadIntent(collection, { select, conditions: rowsRequest.conditions, ...part });
    return bindRequest(makeTablePlanner(config)(whole, JSON_RESPONSE, catalog, role), whole);
  };
  return { table, prepared, keys };

  function requestForList() {
    const { nested, parents } = target!;
    const context = { collection, collections };
    const { select, conditions, order, paging } = parseListParameters(searchParams, context, config);
    const all = [...parentConditions(nested, parents), ...conditions];
    return { select, conditions: all, order, window: windowOf(paging) };
  }

  function requestForRow({ nested, parents }: ResourceTarget, key: readonly string[]) {
    const { select } = parseRowParameters(searchParams, { collection, collections });
    return { select, conditions: rowConditions({ collection, key, nested }, parents) };
  }
}

function toKey(name: string, index: number): SelectedColumn {
  return { kind: "column", field: { name, path: [] }, alias: `${KEY_ALIAS}${index}`, cast: "text", aggregate: null };
}

function toKeyOrder(name: string): OrderTerm {
  return { field: { name, path: [] }, relation: null, direction: "asc", nulls: null };
}

type TableRequestContext = RequestedRowsContext & {
  /** The schema; null for the default one. */
  readonly schema: string | null;
};

/** Plans a read such as `/rest/v1/things?…` or `things?…` for the role. Throws the error that a client would get. */
function readTableRequest(address: string, context: TableRequestContext): RequestedRows {
  const [path, rawQuery] = splitAddress(address);
  const { plan, prepared } = planRequest(path, rawQuery, context);
  const { table } = plan;
  return {
    table,
    prepared,
    keys: (limit) => planRequest(path, queryForKeys(rawQuery, table.primaryKey, limit), context).prepared,
  };
}

function queryForKeys(rawQuery: string, key: readonly string[], limit: number | null): string {
  const filters = new URLSearchParams(rawQuery);
  // Inner joins in `select` filter rows too, so it stays next to the key.
  const selected = filters.get("select") ?? "*";
  for (const name of ["order", "limit", "offset", "cursor"]) filters.delete(name);
  const columns = key.map((column) => `"${column.replaceAll('"', '\\"')}"`);
  const keys = columns.map((column, index) => `${KEY_ALIAS}${index}:${column}${TEXT_IN_SELECT}`);
  filters.set("select", [...keys, selected].join(","));
  if (limit !== null) {
    if (columns.length > 0) filters.set("order", columns.join(","));
    filters.set("limit", String(limit));
  }
  return filters.toString();
}

function planRequest(path: string, rawQuery: string, { catalog, config, role, schema }: TableRequestContext) {
  const headers = schema === null ? {} : { "accept-profile": schema };
  const request = { method: "GET", path, rawQuery, headers, content: NO_BODY };
  const { action, accept } = parseTableRequest(request, {
    ...tableParseSettings(config),
    timeZones: catalog.timeZones,
  });
  if (action.kind !== "statement") throw notARead();
  const response = { formats: accept, includesBody: true, maxAffected: null };
  const planned = makeTablePlanner(config)(action.intent, response, catalog, role);
  const { plan } = planned;
  if (plan.kind !== "read") throw notARead();
  return { plan, prepared: bindRequest(planned, action.intent) };
}

function splitAddress(address: string): [path: string, rawQuery: string] {
  const mark = address.indexOf("?");
  const path = mark < 0 ? address : address.slice(0, mark);
  const below = path.startsWith(TABLE_PREFIX) ? path.slice(TABLE_PREFIX.length) : path;
  return [below.startsWith("/") ? below : `/${below}`, mark < 0 ? "" : address.slice(mark + 1)];
}

/** The inputs of planning. */
type RequestedRowsContext = { readonly catalog: Catalog; readonly config: Config; readonly role: string };

/** A planned read of a role. */
export type RequestedRows = {
  readonly table: CatalogTable;
  readonly prepared: PreparedRequest;
  /** The request for the keys of all rows without pagination, or of the first ones. Keys are texts, which keep all digits of numbers. */
  keys(limit: number | null): PreparedRequest;
};

/** A request for rows: its interface and its plan. `rows` throws the error that the request would get. */
export type ExplainableRequest = {
  readonly interfaceName: InterfaceName;
  readonly path: string;
  rows(context: RequestedRowsContext): RequestedRows;
};

/** Parses `things?id=eq.7`, `/rest/v1/things`, `/api/v1/things/7` or `/users`. */
export function parseReadAddress(address: string, schema: string | null = null): ExplainableRequest {
  const { pathname: path } = new URL(address, "http://localhost");
  if (address.startsWith("/") && !isPathUnder(TABLE_PREFIX, path)) {
    return { interfaceName: "resource", path, rows: (context) => readResourceRequest(address, context) };
  }
  return { interfaceName: "table", path, rows: (context) => readTableRequest(address, { ...context, schema }) };
}

/** The response that a client would get, the cause that it does not contain, and the grants without which Postgres refused the role. */
type ReadRefusal = {
  readonly status: number;
  readonly code: string;
  readonly message: string;
  /** An error in a policy, whose message clients do not get. */
  readonly cause: string | null;
  readonly missingGrants: readonly string[];
};

/** Explains a refusal. Throws errors that are no responses. */
export function explainRefusal(error: unknown, { role, catalog, config }: RequestedRowsContext): ReadRefusal {
  if (!(error instanceof ApiError || error instanceof pg.DatabaseError)) throw error;
  const { status, code, message } = toHttpError(error, { anonymous: role === config.anonRole });
  const cause = error instanceof pg.DatabaseError && error.message !== message ? error.message : null;
  return {
    status,
    code,
    message,
    cause,
    missingGrants: findMissingGrants(error.message, { role, verbs: ["select"] }, catalog).map(({ sql }) => sql),
  };
}
