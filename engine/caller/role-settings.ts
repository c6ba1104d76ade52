import type { Role } from "../catalog/roles.ts";

/**
 * What is not the role's to say: who acts and where names are looked up, which the request says; how values are
 * written, which the service reads; what a transaction that has begun cannot change; and what would end or fail the
 * connection, which others share.
 */
const TAKEN = new Set([
  ...["role", "session_authorization", "search_path"],
  ...["client_encoding", "datestyle", "intervalstyle", "bytea_output", "standard_conforming_strings"],
  ...["extra_float_digits", "lc_monetary"],
  ...["transaction_isolation", "transaction_read_only", "transaction_deferrable"],
  ...["transaction_timeout", "exit_on_error", "temp_buffers"],
]);

/** As a default it would speak of transactions to come, and the role's own one has begun. */
const READ_ONLY = "default_transaction_read_only";
const ON = /^(on|t|tr|tru|true|y|ye|yes|1)$/i;

const NONE: readonly (readonly [name: string, value: string])[] = [];

/**
 * What `alter role … set` says of a caller's role: Postgres applies it at a login, and nobody logs in as one. What
 * only a superuser may set would fail the request.
 */
export function settingsOfRole(role: Role | undefined): readonly (readonly [name: string, value: string])[] {
  if (!role || role.settings.size === 0) return NONE;
  return [...role.settings]
    .filter(([name]) => role.free.has(name) && !TAKEN.has(name.toLowerCase()) && !name.startsWith("pgrst."))
    .map(([name, value]) => (name === READ_ONLY && ON.test(value) ? ["transaction_read_only", "on"] : [name, value]));
}
