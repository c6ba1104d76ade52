import {
  type Claims,
  type InterfaceName,
  makeCallerSettings,
  makeSearchPathSetting,
  roleSettings,
  serializeClaims,
} from "#accounts/identity";
import type { Catalog } from "#catalog";
import type { Config } from "#config";
import { requestInfoOf } from "#http/request-info";
import type { StatementContext } from "#postgres/statement";

type ContextConfig = Pick<Config, "schemas" | "usersAccess" | "appSettings" | "extraSearchPath">;
type AssumedCaller = { readonly role: string; readonly claims: Claims };
type AssumedRequest = { readonly interfaceName: InterfaceName; readonly path: string };

/** Makes the context in which a request of a given caller would run: for `policies`, `why` and policy tests. */
export function makeAssumedContexts(
  catalog: Catalog,
  config: ContextConfig,
): (caller: AssumedCaller, request: AssumedRequest) => StatementContext {
  const contextOf = makeCallerSettings(config);
  const searchPath = makeSearchPathSetting(config.extraSearchPath)(config.schemas[0]!);
  return ({ role, claims }, { interfaceName, path }) => {
    const info = requestInfoOf(interfaceName, { id: "command", method: "GET", path, headers: {} });
    const { settings } = contextOf({ role, claimsText: serializeClaims({ ...claims, role }) }, info);
    return { role, settings: [searchPath, ...roleSettings(catalog.roles.get(role)), ...settings] };
  };
}
