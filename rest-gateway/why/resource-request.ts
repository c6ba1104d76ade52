import type { Catalog } from "../../engine/catalog/catalog.ts";
import type { Config } from "../../engine/config/config.ts";
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
import { KEY, NO_ROWS, type RequestedRows } from "./requested-rows.ts";

type Surroundings = { readonly catalog: Catalog; readonly config: Config; readonly role: string };

const JSON_ROWS = {
  formats: [{ kind: "media", type: "application/json" }],
  body: true,
  maxAffected: null,
} as const;

/** `/users?…`, `/api/v1/things/7`: as the conventional interface would plan it for that role. Throws what it would answer. */
export function readResourceRequest(address: string, { catalog, config, role }: Surroundings): RequestedRows {
  const { pathname, searchParams } = new URL(address, "http://localhost");
  const parsed = parseAddress(pathname);
  const collections = collectionsOf(catalog, { role, version: Number(parsed.version ?? 1) });
  const target = findTarget(parsed, collections);
  if (!target) throw notFound();
  if (target.action) throw new Error(NO_ROWS);
  const { collection } = target;
  const { table } = collection;
  const wish = target.key === null ? wishForList() : wishForRow(target, target.key);
  const intent = readIntent(collection, wish);
  const prepared = makeResourcePreparer(config, makeCounts().plans)({ catalog, caller: { role } }, intent);
  const keys = () => {
    const select = table.primaryKey.length === 0 ? everyField(collection) : table.primaryKey.map(toKey);
    const whole = readIntent(collection, { select, conditions: wish.conditions });
    return makeTablePreparer(config).prepare(whole, JSON_ROWS, catalog, role);
  };
  return { table, prepared, keys };

  function wishForList() {
    const { nested, parents } = target!;
    const about = { collection, collections };
    const { select, conditions, order, paging } = parseListParameters(searchParams, about, config);
    const all = [...liesWithin(nested, parents), ...conditions];
    return { select, conditions: all, order, window: windowOf(paging) };
  }

  function wishForRow({ nested, parents }: Target, key: readonly string[]) {
    const { select } = parseRowParameters(searchParams, { collection, collections });
    return { select, conditions: isRow({ collection, key, nested }, parents) };
  }
}

function toKey(name: string, index: number): SelectedColumn {
  return { kind: "column", field: { name, path: [] }, alias: `${KEY}${index}`, cast: "text", aggregate: null };
}
