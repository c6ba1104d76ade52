import type { Caller } from "#accounts/identity";
import type { Catalog } from "#catalog";
import type { Config } from "#config";
import { memoizePerObject } from "#runtime";
import { grantsOf } from "./grants.ts";
import { makeSurface } from "./list-tools.ts";
import type { McpSurface } from "./surface.ts";

type SurfaceCacheOptions = {
  readonly config: Pick<Config, "mcp" | "schemas" | "mcpSchemas" | "mcpMaxRows">;
  readonly catalog: () => Catalog;
};

const MAX_SURFACES = 20;

/** The tools of a role and its grants, made once per catalogue. */
export class SurfaceCache {
  readonly #options: SurfaceCacheOptions;
  readonly #surfacesOf = memoizePerObject((_catalog: Catalog) => new Map<string, Promise<McpSurface>>());

  constructor(options: SurfaceCacheOptions) {
    this.#options = options;
  }

  of(caller: Pick<Caller, "role" | "claims">): Promise<McpSurface> {
    const { config, catalog: currentCatalog } = this.#options;
    const catalog = currentCatalog();
    const surfaces = this.#surfacesOf(catalog);
    const grants = grantsOf(caller, config);
    const key = `${caller.role} ${grants.key}`;
    const known = surfaces.get(key);
    if (known) return known;
    if (surfaces.size >= MAX_SURFACES) surfaces.clear();
    const made = makeSurface({ catalog, role: caller.role, grants, config });
    surfaces.set(key, made);
    made.catch(() => surfaces.delete(key));
    return made;
  }
}
