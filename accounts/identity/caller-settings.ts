import type { Catalog, CatalogRole } from "#catalog";
import type { Config } from "#config";
import { quotedName } from "#postgres/client";
import type { StatementContext } from "#postgres/statement";
import { memoize } from "#runtime";
import type { Logger } from "#runtime/log";
import type { Caller } from "./caller.ts";
import { isReadOnlyAccess } from "./oauth-access.ts";

/**
 * Settings that a role cannot have: the role and the search path, which depend on the request; the text format of values,
 * which the service parses; settings that cannot change within a transaction; and settings that would end or break a
 * connection, because connections are shared.
 */
const EXCLUDED_SETTINGS = new Set([
  ...["role", "session_authorization", "search_path"],
  ...["client_encoding", "datestyle", "intervalstyle", "bytea_output", "standard_conforming_strings"],
  ...["extra_float_digits", "lc_monetary"],
  ...["transaction_isolation", "transaction_read_only", "transaction_deferrable"],
  ...["transaction_timeout", "exit_on_error", "temp_buffers"],
]);

/** This default applies to later transactions only, so it is translated to the setting of the current one. */
const READ_ONLY_DEFAULT = "default_transaction_read_only";
const TRUE_PATTERN = /^(on|t|tr|tru|true|y|ye|yes|1)$/i;

const NO_SETTINGS: readonly (readonly [name: string, value: string])[] = [];

/** The interface that received the request, the queue of function calls, or the delivery of webhooks; policies may check it. */
export type InterfaceName = (typeof INTERFACE_NAMES)[number];
export const INTERFACE_NAMES = ["table", "resource", "graphql", "realtime", "queue", "webhooks", "storage"] as const;

export type RequestInfo = {
  readonly interface: InterfaceName;
  readonly requestId: string;
  readonly method: string;
  readonly path: string;
  /** A JSON object with lower-case names, like PostgREST's. */
  readonly headers: string;
  readonly cookies: string;
};

/** The values for statements that no single request causes. */
export const NO_REQUEST = { requestId: "", method: "", path: "", headers: "{}", cookies: "{}" } as const;

/** The caller, or only its role and claims text if it is no application. */
type CallerOfSettings = Pick<Caller, "role" | "claimsText"> & Partial<Pick<Caller, "claims">>;

/** Returns the role and the settings of a request. Each request sets all of them, so that none keeps a value of the previous one. */
export function makeCallerSettings({ usersAccess, appSettings }: Pick<Config, "usersAccess" | "appSettings">) {
  const deploymentSettings = [["app.users_access", usersAccess] as const, ...appSettings];
  const readOnlySettings = [...deploymentSettings, ["transaction_read_only", "on"] as const];
  return (caller: CallerOfSettings, requestInfo: RequestInfo): StatementContext => ({
    role: caller.role,
    settings: [
      ["request.jwt.claims", caller.claimsText],
      ["request.interface", requestInfo.interface],
      ["request.id", requestInfo.requestId],
      ["request.method", requestInfo.method],
      ["request.path", requestInfo.path],
      ["request.headers", requestInfo.headers],
      ["request.cookies", requestInfo.cookies],
      ...(isReadOnlyAccess(caller) ? readOnlySettings : deploymentSettings),
    ],
  });
}

type NamedSetting = StatementContext["settings"][number];

/** Returns the search path: the requested schema, then those of PGRST_DB_EXTRA_SEARCH_PATH. */
export function makeSearchPathSetting(extraSearchPath: readonly string[]): (schema: string) => NamedSetting {
  return memoize((schema: string): NamedSetting => {
    return ["search_path", [schema, ...extraSearchPath].map((name) => quotedName(name)).join(", ")];
  });
}

/**
 * Returns the settings of `alter role … set`. Postgres applies them at login only, and requests switch to the role without
 * one. Settings that only a superuser may change are left out, because they would fail the request.
 */
export function roleSettings(role: CatalogRole | undefined): readonly (readonly [name: string, value: string])[] {
  if (!role || role.settings.size === 0) return NO_SETTINGS;
  return [...role.settings]
    .filter(
      ([name]) =>
        role.userSettable.has(name) && !EXCLUDED_SETTINGS.has(name.toLowerCase()) && !name.startsWith("pgrst."),
    )
    .map(([name, value]) =>
      name === READ_ONLY_DEFAULT && TRUE_PATTERN.test(value) ? ["transaction_read_only", "on"] : [name, value],
    );
}

type AnonymousRoleState = Pick<Config, "anonRole"> & {
  readonly loginRole: string;
  readonly catalog: Pick<Catalog, "roles">;
};

/** Logs once that anonymous callers are refused because their role is missing, and again if it disappears later. */
export function makeMissingRoleWarning(log: Pick<Logger, "warn">): (state: AnonymousRoleState) => void {
  let missing: string | null = null;
  return ({ anonRole, loginRole, catalog }) => {
    const isMissing = !catalog.roles.has(anonRole);
    if (isMissing && missing !== anonRole) {
      const [role, login] = [quotedName(anonRole), quotedName(loginRole)];
      log.warn(
        { role: anonRole },
        `callers without credentials are refused: requests cannot become ${role} (PGRST_DB_ANON_ROLE). ` +
          `To serve them: create role ${role}; grant ${role} to ${login};`,
      );
    }
    missing = isMissing ? anonRole : null;
  };
}
