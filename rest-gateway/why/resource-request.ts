import { makeCounts } from "../../engine/metrics/counts.ts";
import { notFound } from "../../engine/wrong-address.ts";
import { isRow, liesWithin } from "../resource/belonging.ts";
import { collectionsOf } from "../resource/collections.ts";
import { readIntent } from "../resource/intents.ts";
import { parseAddress } from "../resource/parse/address.ts";
import { windowOf } from "../resource/parse/paging.ts";
import { parseListParameters, parseRowParameters } from "../resource/parse/parameters.ts";
import { everyField } from "../resource/parse/selected-fields.ts";
import { findTarget, type Target } from "../resource/parse/target.ts";
import { makeResourcePreparer } from "../resource/prepare.ts";
import type { SelectedColumn } from "../statement/intent.ts";
import { makeTablePreparer } from "../table/deployment.ts";
import { KEY, NO_ROWS, type RequestedRows, type RequestedRowsContext } from "./requested-rows.ts";

const JSON_ROWS = {
  formats: [{ kind: "media", type: "application/json" }],
  body: true,
  maxAffected: null,
} as const;

/** `/users?…`, `/api/v1/things/7`: as the conventional interface would plan it for that role. Throws what it would answer. */
export function readResourceRequest(address: string, { catalog, config, role }: RequestedRowsContext): RequestedRows {
  const { pathname, searchParams } = new URL(address, "http://localhost");
  const parsed = parseAddress(pathname);
  const collections = collectionsOf(catalog, { role, version: Number(parsed.version ?? 1) });
  const target = findTarget(parsed, collections);
  if (!target) throw notFound();
  if (target.action) throw new Error(NO_ROWS);
  const { collection } = target;
  const { table } = collection;
  const rowsRequest = target.key === null ? requestForList() : requestForRow(target, target.key);
  const intent = readIntent(collection, rowsRequest);
  const prepared = makeResourcePreparer(config, makeCounts().plans)({ catalog, caller: { role } }, intent);
  const keys = () => {
    const select = table.primaryKey.length === 0 ? everyField(collection) : table.primaryKey.map(toKey);
    const whole = readIntent(collection, { select, conditions: rowsRequest.conditions });
    return makeTablePreparer(config).prepare(whole, JSON_ROWS, catalog, role);
  };
  return { table, prepared, keys };

  function requestForList() {
    const { nested, parents } = target!;
    const about = { collection, collections };
    const { select, conditions, order, paging } = parseListParameters(searchParams, about, config);
    const all = [...liesWithin(nested, parents), ...conditions];
    return { select, conditions: all, order, window: windowOf(paging) };
  }

  function requestForRow({ nested, parents }: Target, key: readonly string[]) {
    const { select } = parseRowParameters(searchParams, { collection, collections });
    return { select, conditions: isRow({ collection, key, nested }, parents) };
  }
}

function toKey(name: string, index: number): SelectedColumn {
  return { kind: "column", field: { name, path: [] }, alias: `${KEY}${index}`, cast: "text", aggregate: null };
}
