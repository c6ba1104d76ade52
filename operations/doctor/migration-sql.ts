const CHANGES_SCHEMA =
  /^(?:alter (?!system\b)|create (?:or replace (?:function|procedure)|policy|index|role)\b|comment on\b|grant\b|revoke\b|drop policy\b)/i;

/** The fix as SQL for a migration: null if it is a setting, advice, or a command that runs outside of transactions. */
export function findMigrationSql(fix: string): string | null {
  if (!CHANGES_SCHEMA.test(fix) || fix.includes("…") || /\bto current_user\b/.test(fix)) return null;
  // A migration runs in a transaction.
  return fix.replace(/^create index concurrently /i, "create index ");
}
