import { useEffect } from "preact/hooks";
import { makeStore, useStore } from "../store.ts";
import { type DatabaseDescription, inNaturalOrder } from "./catalog.ts";
import { request } from "./client.ts";
import { ServiceError } from "./http.ts";
import type { Loaded } from "./use-loaded.ts";

type CatalogState = Omit<Loaded<DatabaseDescription>, "reload"> & { readonly tag: string | null };

/** The one catalogue for all parts of Studio, since it is large. */
const state = makeStore<CatalogState>({ value: null, error: null, isLoading: false, tag: null });

let loading: Promise<void> | null = null;

/** Returns all objects of the database. Reads them again, if they have changed, whenever a component that uses them is first shown. */
export function useCatalog(): Loaded<DatabaseDescription> {
  const { value, error, isLoading } = useStore(state);
  useEffect(() => {
    loading ??= load();
  }, []);
  return { value, error, isLoading: isLoading || (value === null && error === null), reload: reloadCatalog };
}

/** Resolves when the page shows a catalogue that was read after this call. Called after a change of the schema. */
export async function reloadCatalog(): Promise<void> {
  await loading;
  loading ??= load();
  await loading;
}

async function load(): Promise<void> {
  const before = state.get();
  state.set({ ...before, isLoading: true });
  try {
    const headers: Record<string, string> = before.tag === null ? {} : { "If-None-Match": before.tag };
    const response = await request("/admin/v1/catalog", { headers });
    const value = inNaturalOrder((await response.json()) as DatabaseDescription);
    state.set({ value, error: null, isLoading: false, tag: response.headers.get("ETag") });
  } catch (error) {
    // On 304 the page keeps its catalogue.
    const isUnchanged = error instanceof ServiceError && error.status === 304;
    state.set({ ...before, error: isUnchanged ? null : (error as Error), isLoading: false });
  } finally {
    loading = null;
  }
}
