import { memoize } from "../cache/memoize.ts";
import type { CatalogRole } from "../catalog/roles.ts";
import type { Config } from "../config/config.ts";
import type { StatementContext } from "../database/statement.ts";
import { quotedName } from "../pg-client/quoted-name.ts";
import type { Caller } from "./caller.ts";

/**
 * What is not the role's to say: who acts and where names are looked up, which the request says; how values are
 * written, which the service reads; what a transaction that has begun cannot change; and what would end or fail the
 * connection, which others share.
 */
const EXCLUDED_SETTINGS = new Set([
  ...["role", "session_authorization", "search_path"],
  ...["client_encoding", "datestyle", "intervalstyle", "bytea_output", "standard_conforming_strings"],
  ...["extra_float_digits", "lc_monetary"],
  ...["transaction_isolation", "transaction_read_only", "transaction_deferrable"],
  ...["transaction_timeout", "exit_on_error", "temp_buffers"],
]);

/** As a default it would speak of transactions to come, and the role's own one has begun. */
const READ_ONLY_DEFAULT = "default_transaction_read_only";
const TRUE_PATTERN = /^(on|t|tr|tru|true|y|ye|yes|1)$/i;

const NO_SETTINGS: readonly (readonly [name: string, value: string])[] = [];

/** The door a request came through; policies may tell them apart. */
export type InterfaceName = "table" | "resource" | "graphql" | "realtime";

export type RequestInfo = {
  readonly interface: InterfaceName;
  readonly requestId: string;
  readonly method: string;
  readonly path: string;
  /** JSON objects of lower-case names, as PostgREST gives them to SQL. */
  readonly headers: string;
  readonly cookies: string;
};

/** The caller as Postgres sees it. Every request sets every one of these, so none can inherit what another has left. */
export function makeCallerSettings({ usersAccess, appSettings }: Pick<Config, "usersAccess" | "appSettings">) {
  const deploymentSettings = [["app.users_access", usersAccess] as const, ...appSettings];
  return (caller: Pick<Caller, "role" | "claimsText">, requestInfo: RequestInfo): StatementContext => ({
    role: caller.role,
    settings: [
      ["request.jwt.claims", caller.claimsText],
      ["request.interface", requestInfo.interface],
      ["request.id", requestInfo.requestId],
      ["request.method", requestInfo.method],
      ["request.path", requestInfo.path],
      ["request.headers", requestInfo.headers],
      ["request.cookies", requestInfo.cookies],
      ...deploymentSettings,
    ],
  });
}

type NamedSetting = StatementContext["settings"][number];

/** Where SQL looks for names: the schema that is asked, then the deployment's own (PGRST_DB_EXTRA_SEARCH_PATH). */
export function makeSearchPathSetting(extraSearchPath: readonly string[]): (schema: string) => NamedSetting {
  return memoize((schema: string): NamedSetting => {
    return ["search_path", [schema, ...extraSearchPath].map((name) => quotedName(name)).join(", ")];
  });
}

/**
 * What `alter role … set` says of a caller's role: Postgres applies it at a login, and nobody logs in as one. What
 * only a superuser may set would fail the request.
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
