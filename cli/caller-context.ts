import type { Catalog } from "../engine/catalog/catalog.ts";
import type { Config } from "../engine/config/config.ts";
import type { StatementContext } from "../engine/database/statement.ts";
import {
  type InterfaceName,
  makeCallerSettings,
  makeSearchPathSetting,
  roleSettings,
} from "../engine/identity/caller-settings.ts";
import { type Claims, parseClaims, serializeClaims } from "../engine/identity/claims.ts";
import { requestInfoOf } from "../http/request-info.ts";
import { UsageError } from "./command.ts";

type AssumedCaller = { readonly role: string; readonly claims: Claims };
type AssumedRequest = { readonly interfaceName: InterfaceName; readonly path: string };

/** Makes the role and settings with which a request of a given caller would run. */
export function makeCallerContexts(catalog: Catalog, config: Config) {
  const contextOf = makeCallerSettings(config);
  const searchPath = makeSearchPathSetting(config.extraSearchPath)(config.schemas[0]!);

  return ({ role, claims }: AssumedCaller, { interfaceName, path }: AssumedRequest): StatementContext => {
    if (!catalog.roles.has(role)) throw new UsageError(`Requests cannot use the role "${role}".`);
    const occasion = requestInfoOf(interfaceName, { id: "command", method: "GET", path, headers: {} });
    const { settings } = contextOf({ role, claimsText: serializeClaims({ ...claims, role }) }, occasion);
    return { role, settings: [searchPath, ...roleSettings(catalog.roles.get(role)), ...settings] };
  };
}

/** Parses `--claims` (JSON) and `--sub` (the claim that is used most). */
export function parseClaimOptions({ claims, sub }: Readonly<Record<string, unknown>>): Claims {
  const subClaim = sub === undefined ? {} : { sub };
  if (claims === undefined) return subClaim;
  const parsed = parseClaims(String(claims));
  if (parsed) return { ...parsed, ...subClaim };
  throw new UsageError(`--claims must be a JSON object, such as '{"sub": "7"}'.`);
}
