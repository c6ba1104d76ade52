const AUTH_TABLE =
  /(?<![\w."])("?)auth\1\s*\.\s*("?)(identities|sessions|refresh_tokens|mfa_factors|mfa_challenges|mfa_amr_claims|one_time_tokens|audit_log_entries|flow_state)\2(?![\w"])/gi;
/** Rows are written to the table behind the view, so that "on conflict" works, and without the triggers that a seed may switch off. */
const IDENTITY_INSERT = /(\binsert\s+into\s+)("?)auth\2\s*\.\s*("?)identities\3(?![\w"])/gi;

/** Tables of Supabase Auth are views of schema `supabase_auth`. Strings and bodies of functions are included. */
export function renameAuthTables(sql: string): string {
  return sql
    .replace(IDENTITY_INSERT, "$1supabase_auth.identity_rows")
    .replace(AUTH_TABLE, (match, _schema, _table, table: string, offset: number) =>
      /\breferences\s+$/i.test(sql.slice(Math.max(0, offset - 20), offset))
        ? match
        : `supabase_auth.${table.toLowerCase()}`,
    );
}
