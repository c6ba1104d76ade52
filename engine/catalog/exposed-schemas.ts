import type { Catalog } from "./catalog.ts";
import type { Schema } from "./schemas.ts";

/** Those that are served to clients, in the order in which they were configured. */
export function exposedSchemas({ schemas }: Pick<Catalog, "schemas">): Schema[] {
  return [...schemas.values()].filter(({ exposed }) => exposed);
}
