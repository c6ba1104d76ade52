import { deploymentOf, makeTablePreparer } from "../table/deployment.ts";
import { NO_CONTENT } from "../table/parse/content.ts";
import { parseRequest } from "../table/parse/request.ts";
import { PREFIX } from "../table/prefix.ts";
import { KEY, NO_ROWS, type RequestedRows, type RequestedRowsContext } from "./requested-rows.ts";

type TableRequestContext = RequestedRowsContext & {
  /** Null: that of a request which names none. */
  readonly schema: string | null;
};

/** `/rest/v1/things?…`, `things?…`: as the table interface would plan it for that role. Throws what it would answer. */
export function readTableRequest(address: string, context: TableRequestContext): RequestedRows {
  const [path, rawQuery] = split(address);
  const { plan, prepared } = planned(path, rawQuery, context);
  const { table } = plan;
  return {
    table,
    prepared,
    keys: () => planned(path, queryForKeys(rawQuery, table.primaryKey), context).prepared,
  };
}

function queryForKeys(rawQuery: string, key: readonly string[]): string {
  const filters = new URLSearchParams(rawQuery);
  // An inner join filters rows too, so the selection stays, and the key stands beside it.
  const selected = filters.get("select") ?? "*";
  for (const name of ["order", "limit", "offset", "cursor"]) filters.delete(name);
  const keys = key.map((column, index) => `${KEY}${index}:"${column.replaceAll('"', '\\"')}"::text`);
  filters.set("select", [...keys, selected].join(","));
  return filters.toString();
}

function planned(path: string, rawQuery: string, { catalog, config, role, schema }: TableRequestContext) {
  const headers = schema === null ? {} : { "accept-profile": schema };
  const request = { method: "GET", path, rawQuery, headers, content: NO_CONTENT };
  const { action, accept } = parseRequest(request, { ...deploymentOf(config), timeZones: catalog.timeZones });
  if (action.kind !== "statement") throw new Error(NO_ROWS);
  const prepared = makeTablePreparer(config).prepare(
    action.intent,
    { formats: accept, body: true, maxAffected: null },
    catalog,
    role,
  );
  const { plan } = prepared;
  if (plan.kind !== "read") throw new Error(NO_ROWS);
  return { plan, prepared };
}

function split(address: string): [path: string, rawQuery: string] {
  const mark = address.indexOf("?");
  const path = mark < 0 ? address : address.slice(0, mark);
  const below = path.startsWith(PREFIX) ? path.slice(PREFIX.length) : path;
  return [below.startsWith("/") ? below : `/${below}`, mark < 0 ? "" : address.slice(mark + 1)];
}
