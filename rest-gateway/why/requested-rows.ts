import type { Catalog } from "../../engine/catalog/catalog.ts";
import type { CatalogTable } from "../../engine/catalog/tables.ts";
import type { Config } from "../../engine/config/config.ts";
import { makeServiceCounters } from "../../engine/observability/counters.ts";
import type { SelectedColumn } from "../../engine/statement/intent.ts";
import { bindRequest, type PreparedRequest } from "../../engine/statement/prepare.ts";
import { notFound } from "../../http/address-errors.ts";
import { TABLE_PREFIX } from "../http/table-prefix.ts";
import { collectionsOf } from "../resource/collections.ts";
import { makeReadIntent, makeResourcePlanner, parentConditions, rowConditions } from "../resource/intents.ts";
import { findTarget, parseAddress, type ResourceTarget } from "../resource/parse/address.ts";
import { selectEveryField } from "../resource/parse/fields.ts";
import { windowOf } from "../resource/parse/paging.ts";
import { parseListParameters, parseRowParameters } from "../resource/parse/parameters.ts";
import { makeTablePlanner, tableParseSettings } from "../table/dialect.ts";
import { NO_BODY } from "../table/parse/body.ts";
import { parseTableRequest } from "../table/parse/request.ts";

const NOT_A_READ = "Ask for the rows of a table or a view.";
/** Prefix of aliases for the columns of the key. */
export const KEY_ALIAS = "key_of_row_";

const JSON_RESPONSE = {
  formats: [{ kind: "media", type: "application/json" }],
  includesBody: true,
  maxAffected: null,
} as const;

/** Plans a read such as `/users?…` or `/api/v1/things/7` for the role. Throws the error that a client would get. */
export function readResourceRequest(address: string, { catalog, config, role }: RequestedRowsContext): RequestedRows {
  const { pathname, searchParams } = new URL(address, "http://localhost");
  const parsed = parseAddress(pathname);
  const collections = collectionsOf(catalog, { role, version: Number(parsed.version ?? 1) });
  const target = findTarget(parsed, collections);
  if (!target) throw notFound();
  if (target.action) throw new Error(NOT_A_READ);
  const { collection } = target;
  const { table } = collection;
  const rowsRequest = target.key === null ? requestForList() : requestForRow(target, target.key);
  const intent = makeReadIntent(collection, rowsRequest);
  const planned = makeResourcePlanner(config, makeServiceCounters().plans)(catalog, { role }, intent);
  const prepared = bindRequest(planned, intent);
  const keys = () => {
    const select = table.primaryKey.length === 0 ? selectEveryField(collection) : table.primaryKey.map(toKey);
    const whole = makeReadIntent(collection, { select, conditions: rowsRequest.conditions });
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

type TableRequestContext = RequestedRowsContext & {
  /** Null for the default schema. */
  readonly schema: string | null;
};

/** Plans a read such as `/rest/v1/things?…` or `things?…` for the role. Throws the error that a client would get. */
export function readTableRequest(address: string, context: TableRequestContext): RequestedRows {
  const [path, rawQuery] = splitAddress(address);
  const { plan, prepared } = planRequest(path, rawQuery, context);
  const { table } = plan;
  return {
    table,
    prepared,
    keys: () => planRequest(path, queryForKeys(rawQuery, table.primaryKey), context).prepared,
  };
}

function queryForKeys(rawQuery: string, key: readonly string[]): string {
  const filters = new URLSearchParams(rawQuery);
  // Inner joins in `select` filter rows too, so it stays next to the key.
  const selected = filters.get("select") ?? "*";
  for (const name of ["order", "limit", "offset", "cursor"]) filters.delete(name);
  const keys = key.map((column, index) => `${KEY_ALIAS}${index}:"${column.replaceAll('"', '\\"')}"::text`);
  filters.set("select", [...keys, selected].join(","));
  return filters.toString();
}

function planRequest(path: string, rawQuery: string, { catalog, config, role, schema }: TableRequestContext) {
  const headers = schema === null ? {} : { "accept-profile": schema };
  const request = { method: "GET", path, rawQuery, headers, content: NO_BODY };
  const { action, accept } = parseTableRequest(request, {
    ...tableParseSettings(config),
    timeZones: catalog.timeZones,
  });
  if (action.kind !== "statement") throw new Error(NOT_A_READ);
  const response = { formats: accept, includesBody: true, maxAffected: null };
  const planned = makeTablePlanner(config)(action.intent, response, catalog, role);
  const { plan } = planned;
  if (plan.kind !== "read") throw new Error(NOT_A_READ);
  return { plan, prepared: bindRequest(planned, action.intent) };
}

function splitAddress(address: string): [path: string, rawQuery: string] {
  const mark = address.indexOf("?");
  const path = mark < 0 ? address : address.slice(0, mark);
  const below = path.startsWith(TABLE_PREFIX) ? path.slice(TABLE_PREFIX.length) : path;
  return [below.startsWith("/") ? below : `/${below}`, mark < 0 ? "" : address.slice(mark + 1)];
}

/** The inputs of planning. */
export type RequestedRowsContext = { readonly catalog: Catalog; readonly config: Config; readonly role: string };

/** A planned read of a role. */
export type RequestedRows = {
  readonly table: CatalogTable;
  readonly prepared: PreparedRequest;
  /** The keys of all rows without pagination, as texts, which keep all digits of numbers. */
  keys(): PreparedRequest;
};
