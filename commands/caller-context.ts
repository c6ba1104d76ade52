import { type Claims, spellClaims } from "../engine/caller/claims.ts";
import { type Interface, makeContexts } from "../engine/caller/context.ts";
import { occasionOf } from "../engine/caller/occasion.ts";
import { settingsOfRole } from "../engine/caller/role-settings.ts";
import { makeSearchPaths } from "../engine/caller/search-path.ts";
import type { Catalog } from "../engine/catalog/catalog.ts";
import type { Config } from "../engine/config/config.ts";
import type { Context } from "../engine/database/statement.ts";
import { UsageError } from "./command.ts";

type Who = { readonly role: string; readonly claims: Claims };
type Request = { readonly interfaceName: Interface; readonly path: string };

/** A caller whom nobody has called for, as their request would appear to Postgres. */
export function makeCallerContexts(catalog: Catalog, config: Config) {
  const contextOf = makeContexts(config);
  const searchPath = makeSearchPaths(config.extraSearchPath)(config.schemas[0]!);

  return ({ role, claims }: Who, { interfaceName, path }: Request): Context => {
    if (!catalog.roles.has(role)) throw new UsageError(`Requests cannot become "${role}".`);
    const occasion = occasionOf(interfaceName, { id: "command", method: "GET", path, headers: {} });
    const { settings } = contextOf({ role, claimsText: spellClaims({ ...claims, role }) }, occasion);
    return { role, settings: [searchPath, ...settingsOfRole(catalog.roles.get(role)), ...settings] };
  };
}
