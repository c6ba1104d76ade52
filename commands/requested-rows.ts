import type { Interface } from "../engine/caller/context.ts";
import { type Condition, parseFilter } from "../realtime/changes/filter.ts";
import type { RequestedRows, RequestedRowsContext } from "../rest-gateway/why/requested-rows.ts";
import { readResourceRequest } from "../rest-gateway/why/resource-request.ts";
import { readTableRequest } from "../rest-gateway/why/table-request.ts";
import { UsageError } from "./command.ts";

/** A request by any interface that has rows at addresses; what is not planned yet throws what it would be answered. */
export type AddressedRequest = {
  readonly interfaceName: Interface;
  readonly path: string;
  rows(context: RequestedRowsContext): RequestedRows;
};

const TABLES = "/rest/v1";
const CHANGES = "/realtime/v1";

/** `things?id=eq.7`, `/rest/v1/things`, `/api/v1/things/7`, `/users`, `/realtime/v1?table=things&filter=id=eq.7`. */
export function readAddress(address: string): AddressedRequest {
  const { pathname, searchParams } = new URL(address, "http://localhost");
  const isBelow = (folder: string) => pathname === folder || pathname.startsWith(`${folder}/`);
  if (isBelow(CHANGES)) {
    const [schema, request] = changedRows(searchParams);
    return {
      interfaceName: "realtime",
      path: pathname,
      rows: (context) => readTableRequest(request, { ...context, schema }),
    };
  }
  if (address.startsWith("/") && !isBelow(TABLES)) {
    return { interfaceName: "resource", path: pathname, rows: (context) => readResourceRequest(address, context) };
  }
  return {
    interfaceName: "table",
    path: pathname,
    rows: (context) => readTableRequest(address, { ...context, schema: null }),
  };
}

/** The rows whose changes a subscription is sent, as a request to the table interface. */
function changedRows(parameters: URLSearchParams): [schema: string, request: string] {
  const table = parameters.get("table");
  const filter = parameters.get("filter") ?? "";
  const conditions = parseFilter(filter);
  if (!table) throw new UsageError(`Say which table: ${CHANGES}?table=things&filter=id=eq.7`);
  if (!conditions) throw new UsageError(`The filter cannot be read: ${filter}`);
  const query = new URLSearchParams();
  for (const { column, ...asked } of conditions) query.append(quoted(column), spelled(asked));
  return [parameters.get("schema") ?? "public", `/${encodeURIComponent(table)}?${query}`];
}

function spelled({ negated, operator, values }: Omit<Condition, "column">): string {
  const value = operator === "in" ? `(${values.map(quoted).join(",")})` : values[0]!;
  return `${negated ? "not." : ""}${operator}.${value}`;
}

function quoted(text: string): string {
  return `"${text.replace(/[\\"]/g, "\\$&")}"`;
}
