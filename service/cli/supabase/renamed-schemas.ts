/** Names that the service uses itself, and what the project's objects are called instead. Strings and bodies of functions are included. */
export type Renaming = { readonly rename: (sql: string) => string; readonly change: string };

const AUTH_TABLE =
  /(?<![\w."])("?)auth\1\s*\.\s*("?)(identities|sessions|refresh_tokens|mfa_factors|mfa_challenges|mfa_amr_claims|one_time_tokens|audit_log_entries|flow_state)\2(?![\w"])/gi;
/** Rows are written to the table behind the view, so that "on conflict" works, and without the triggers that a seed may switch off. */
const IDENTITY_INSERT = /(\binsert\s+into\s+)("?)auth\2\s*\.\s*("?)identities\3(?![\w"])/gi;

export const AUTH_TABLES: Renaming = {
  rename: (sql) =>
    sql
      .replace(IDENTITY_INSERT, "$1supabase_auth.identity_rows")
      .replace(AUTH_TABLE, (match, _schema, _table, table: string, offset: number) =>
        /\breferences\s+$/i.test(sql.slice(Math.max(0, offset - 20), offset))
          ? match
          : `supabase_auth.${table.toLowerCase()}`,
      ),
  change: "tables of Supabase Auth, such as auth.identities, are views of schema supabase_auth",
};

const CREATES_PRIVATE = /\bcreate\s+schema\s+(?:if\s+not\s+exists\s+)?"?private"?(?![\w"])/i;

/** Null unless the migrations create a schema `private`, which is the service's. */
export function findPrivateSchema(texts: readonly string[]): Renaming | null {
  if (!texts.some((text) => CREATES_PRIVATE.test(text))) return null;
  const isTaken = texts.some((text) => /\bapp_private\b/i.test(text));
  const name = isTaken ? "project_private" : "app_private";
  const inList = (list: string) => list.replace(/(?<![\w"'.-])("?)private\1(?![\w".-])/gi, name);
  const rename = (sql: string) =>
    sql
      .replace(/(?<![\w.$"@/-])("?)private\1\.(?=["\w])/gi, `${name}.`)
      .replace(/\bschema\s+(?:if\s+(?:not\s+)?exists\s+)?(?:"?\w+"?\s*,\s*)*"?private"?(?![\w"])/gi, inList)
      .replace(/\bsearch_path"?\s*(?:=|\bto\b)[^;\n]*/gi, (path) => inList(path.replace(/'private'/gi, `'${name}'`)))
      .replace(/'search_path'\s*,\s*'[^']*'/gi, (call) => call.replace(/\bprivate\b/gi, name))
      .replace(/\b(nspname|schemaname|table_schema|routine_schema|schema_name)(\s*=\s*)'private'/gi, `$1$2'${name}'`);
  return { rename, change: `schema private is the service's: the project's is called ${name}` };
}
