import type { Catalog } from "../../engine/catalog/catalog.ts";
import type { Table } from "../../engine/catalog/tables.ts";
import type { Config } from "../../engine/config/config.ts";
import type { Prepared } from "../statement/prepare.ts";
import { deploymentOf, makeTablePreparer } from "../table/deployment.ts";
import { NO_CONTENT } from "../table/parse/content.ts";
import { parseRequest } from "../table/parse/request.ts";
import { PREFIX } from "../table/prefix.ts";

export type Read = { readonly table: Table; readonly prepared: Prepared };
type Surroundings = { readonly catalog: Catalog; readonly config: Config; readonly role: string };

/** `/rest/v1/things?…`, `things?…`: as the table interface would plan it for that role. Throws what it would answer. */
export function readRequest(address: string, surroundings: Surroundings): Read {
  const [path, rawQuery] = split(address);
  return planned(path, rawQuery, surroundings);
}

/** The same rows, whole, each with its key and nothing else; as texts, which lose no digits of a number. */
export function readKeys(address: string, key: readonly string[], surroundings: Surroundings): Read {
  const [path, rawQuery] = split(address);
  const filters = new URLSearchParams(rawQuery);
  // An inner join filters rows too, so the selection stays, and the key stands beside it.
  const selected = filters.get("select") ?? "*";
  for (const name of ["order", "limit", "offset", "cursor"]) filters.delete(name);
  const keys = key.map((column, index) => `${KEY}${index}:"${column.replaceAll('"', '\\"')}"::text`);
  filters.set("select", [...keys, selected].join(","));
  return planned(path, filters.toString(), surroundings);
}

const NO_TABLE = "Ask for the rows of a table or a view.";
/** Names no column is likely to have. */
export const KEY = "key_of_row_";

function planned(path: string, rawQuery: string, { catalog, config, role }: Surroundings): Read {
  const request = { method: "GET", path, rawQuery, headers: {}, content: NO_CONTENT };
  const { action, accept } = parseRequest(request, { ...deploymentOf(config), timeZones: catalog.timeZones });
  if (action.kind !== "statement") throw new Error(NO_TABLE);
  const prepared = makeTablePreparer(config).prepare(
    action.intent,
    { formats: accept, body: true, maxAffected: null },
    catalog,
    role,
  );
  if (prepared.plan.kind !== "read") throw new Error(NO_TABLE);
  return { table: prepared.plan.table, prepared };
}

function split(address: string): [path: string, rawQuery: string] {
  const mark = address.indexOf("?");
  const path = mark < 0 ? address : address.slice(0, mark);
  const below = path.startsWith(PREFIX) ? path.slice(PREFIX.length) : path;
  return [below.startsWith("/") ? below : `/${below}`, mark < 0 ? "" : address.slice(mark + 1)];
}
