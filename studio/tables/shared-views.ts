import type { SavedView, SharedView, SharedViewList } from "#operations/admin-types";
import { adminCall } from "../api/admin.ts";
import type { DescribedName } from "../api/catalog.ts";
import { request } from "../api/client.ts";

export async function listSharedViews(table: DescribedName, signal: AbortSignal): Promise<SharedViewList["views"]> {
  return (await adminCall<SharedViewList>(`GET ${pathOf(table)}`, { signal })).views;
}

export function shareView(table: DescribedName, view: SavedView): Promise<SharedView> {
  return adminCall(`POST ${pathOf(table)}`, { body: view });
}

export async function deleteSharedView(table: DescribedName, name: string): Promise<void> {
  const path = `/admin/v1${pathOf(table)}/${encodeURIComponent(name)}`;
  await request(path, { method: "DELETE", as: "administrator" });
}

function pathOf({ schema, name }: DescribedName): `/${string}` {
  return `/views/${encodeURIComponent(schema)}/${encodeURIComponent(name)}`;
}
