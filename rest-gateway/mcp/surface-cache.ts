import type { Caller } from "#accounts/identity";
import { type Catalog, exposedSchemas, type Routine } from "#catalog";
import type { Config } from "#config";
import { makeSchemaOfType, viewSchema } from "#rest-gateway/openapi/schemas";
import { memoizePerObject } from "#runtime";
import { grantsOf, type McpGrants } from "./grants.ts";
import { makeTools } from "./list-tools.ts";
import { type McpSchema, type McpSurface, verbsOf } from "./surface.ts";

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

type SurfaceOptions = {
  readonly catalog: Catalog;
  readonly role: string;
  readonly grants: McpGrants;
  readonly config: Pick<Config, "mcpSchemas" | "mcpMaxRows">;
};

async function makeSurface({ catalog, role, grants, config }: SurfaceOptions): Promise<McpSurface> {
  const schemas: McpSchema[] = [];
  for (const { name } of exposedSchemas(catalog)) {
    if (config.mcpSchemas !== null && !config.mcpSchemas.includes(name)) continue;
    const viewer = await viewSchema({ catalog, role, schema: name, tables: null, mode: "follow-privileges" });
    schemas.push({
      viewer,
      name,
      typeSchema: makeSchemaOfType(catalog, viewer),
      tables: viewer.tables.filter((visible) => verbsOf(visible, grants).length > 0),
      routines: viewer.routines.flatMap((overloads) => callableOf(overloads, grants)),
    });
  }
  return { catalog, grants, schemas, tools: makeTools(schemas, { catalog, grants, maxRows: config.mcpMaxRows }) };
}

/**
 * Returns the callable functions. Overloads have one name in the table interface, which selects by the arguments: only unambiguous
 * functions are tools.
 */
function callableOf(overloads: readonly Routine[], grants: McpGrants): readonly Routine[] {
  const [routine, ...others] = overloads;
  if (routine === undefined || others.length > 0) return [];
  const hasNames = routine.arguments.every(({ name }) => name !== null);
  return hasNames && grants.mayCall(routine.volatility !== "volatile") ? [routine] : [];
}
