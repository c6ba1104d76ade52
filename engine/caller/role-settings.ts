import type { Role } from "../catalog/roles.ts";

/** Settings that any login may change for itself; the others would fail the request. */
const FREE = new Set([
  "statement_timeout",
  "lock_timeout",
  "idle_in_transaction_session_timeout",
  "work_mem",
  "timezone",
]);

const NONE: readonly (readonly [name: string, value: string])[] = [];

/** What `alter role … set` says of a caller's role: Postgres applies it at a login, and nobody logs in as one. */
export function settingsOfRole(role: Role | undefined): readonly (readonly [name: string, value: string])[] {
  if (!role || role.settings.size === 0) return NONE;
  return [...role.settings].filter(
    ([name]) => FREE.has(name.toLowerCase()) || (name.includes(".") && !name.startsWith("pgrst.")),
  );
}
