import pg from "pg";

/** A statement that runs here, or an empty text where it is removed, and what was changed. */
export type AdaptedStatement = { readonly sql: string; readonly changes: readonly string[] };

type Rule = {
  readonly pattern: RegExp;
  /** The text that replaces each match of the pattern; null if the statement is removed. */
  readonly replacement: string | ((statement: string, match: RegExpExecArray) => string) | null;
  readonly change: string | ((match: RegExpExecArray) => string);
};

/** The roles of Supabase that own what its dumps contain; here the owner of the migrations does. */
const OWNERS = String.raw`"?(?:postgres|supabase_\w+|dashboard_user|pgbouncer|pgsodium_\w+)"?`;
/** Schemas that every project of Supabase has. */
const SUPABASE_SCHEMAS =
  "auth|storage|realtime|extensions|cron|net|vault|pgmq|pgmq_public|graphql|graphql_public|supabase_functions|supabase_migrations|pgbouncer|pgsodium|_realtime|_analytics";
/** Tables of dumps that contain the state of Supabase's services. */
const SERVICE_ROWS =
  "audit_log_entries|flow_state|instances|mfa_amr_claims|mfa_challenges|mfa_factors|oauth_\\w+|one_time_tokens|refresh_tokens|saml_\\w+|schema_migrations|sessions|sso_\\w+";

/** Tables of Supabase Auth that are views of schema `supabase_auth` here. */
export const AUTH_VIEWS =
  "identities|sessions|refresh_tokens|mfa_factors|mfa_challenges|mfa_amr_claims|one_time_tokens|audit_log_entries|flow_state";

/** Views for which no table mirrors the service's rows, so that no trigger can be on it. */
const UNFOLLOWED_VIEWS = "refresh_tokens|mfa_challenges|mfa_amr_claims|one_time_tokens|flow_state";

/** Tables of Supabase's services that do not exist here, or that nothing fills. */
const SERVICE_TABLES =
  'storage"?\\s*\\.\\s*"?(?:buckets_\\w+|iceberg_\\w+|migrations|prefixes|s3_multipart_uploads\\w*|vector_indexes)|' +
  'auth"?\\s*\\.\\s*"?(?:custom_oauth_providers|instances|oauth_\\w+|saml_\\w+|schema_migrations|sso_\\w+)|' +
  'realtime"?\\s*\\.\\s*"?(?:schema_migrations|subscription)';
const STORAGE_FUNCTIONS =
  "add_prefixes|allow_\\w+_operation|can_insert_object|delete_\\w*prefix\\w*|enforce_bucket_name_length|extension|filename|foldername|get_common_prefix|" +
  "get_level|get_prefix(?:es)?|get_size_by_bucket|list_\\w+_with_delimiter|lock_top_prefixes|objects_\\w+|operation|prefixes_\\w+|protect_delete|search\\w*|update_updated_at_column";

/** Columns and constraints of Supabase's two storage tables. */
const STORAGE_COLUMNS =
  "allowed_mime_types|avif_autodetection|bucket_id|created_at|file_size_limit|id|last_accessed_at|level|metadata|name|owner|owner_id|path_tokens|public|type|updated_at|user_metadata|version";
const STORAGE_CONSTRAINTS = "(?:buckets|objects)_(?:pkey|owner_fkey|bucket_?id_fkey)";

const UNFOLLOWED_VIEW = `"?auth"?\\s*\\.\\s*"?(?:${UNFOLLOWED_VIEWS})"?(?!["\\w])`;
const AUTH_VIEW = `"?auth"?\\s*\\.\\s*"?(?:${AUTH_VIEWS})"?(?!["\\w])`;
const NAME = String.raw`(?:"[^"]+"|\w+)(?:\s*\.\s*(?:"[^"]+"|\w+))?`;
const SERVICE_TABLE = `"?(?:${SERVICE_TABLES})"?(?!["\\w])`;
const STORAGE_CHANGE =
  `(?:add|alter|drop)\\s+(?:(?:column\\s+)?(?:if\\s+(?:not\\s+)?exists\\s+)?"?(?:${STORAGE_COLUMNS})"?|` +
  `constraint\\s+(?:if\\s+exists\\s+)?"?${STORAGE_CONSTRAINTS}"?)(?!["\\w])`;

/** Removes the items of a list that match; if none is left, removes the statement. */
function removeItems(start: string, items: readonly string[], removed: RegExp, end = ""): string {
  const kept = items.filter((item) => !removed.test(item));
  return kept.length === 0 ? "" : `${start}${kept.join(",").trim()}${end}`;
}

/** Rules for the statements that schema comparisons write when two versions of Supabase's services differ. */
const SERVICE_RULES: readonly Rule[] = [
  {
    pattern: new RegExp(
      `^(?:(?:alter|create)\\s+table\\s+(?:if\\s+(?:not\\s+)?exists\\s+)?(?:only\\s+)?|create\\s+(?:unique\\s+)?index\\s[^(]*?\\son\\s+)${SERVICE_TABLE}`,
      "i",
    ),
    replacement: null,
    change: "removed a statement about a table of Supabase's services",
  },
  {
    pattern: new RegExp(
      `^(drop\\s+table\\s+(?:if\\s+exists\\s+)?|(?:grant|revoke)\\s[^(]*?\\son\\s+(?:table\\s+)?)((?:${NAME}\\s*,\\s*)*${SERVICE_TABLE}(?:\\s*,\\s*${NAME})*)([\\s\\S]*)$`,
      "i",
    ),
    replacement: (_statement, [, start, tables, end]) =>
      removeItems(start!, tables!.split(","), new RegExp(`^\\s*${SERVICE_TABLE}\\s*$`, "i"), end),
    change: "removed a table of Supabase's services from a statement",
  },
  {
    pattern:
      /^create\s+(?:or\s+replace\s+)?(?:constraint\s+)?trigger\s(?:(?!\son\s)[\s\S])*\son\s+"?(?:storage|realtime)"?\s*\.[\s\S]*\sexecute\s+(?:function|procedure)\s+"?(?:storage|realtime)"?\s*\./i,
    replacement: null,
    change: "removed a trigger of Supabase's services",
  },
  {
    pattern: /^(drop\s+trigger)\s+(?!if\b)([^;]*\son\s+"?storage"?\s*\.)/i,
    replacement: "$1 if exists $2",
    change: 'added "if exists" to a trigger of storage',
  },
  {
    pattern: new RegExp(
      `^(?:create\\s+(?:or\\s+replace\\s+)?|alter\\s+|drop\\s+|(?:grant|revoke)\\s[^(]*?\\son\\s+)function\\s+(?:if\\s+exists\\s+)?"?storage"?\\s*\\.\\s*"?(?:${STORAGE_FUNCTIONS})"?\\s*\\(`,
      "i",
    ),
    replacement: null,
    change: "removed a statement about a function of storage, which is that of the service",
  },
  {
    pattern: new RegExp(
      `^(alter\\s+table\\s+(?:if\\s+exists\\s+)?(?:only\\s+)?"?storage"?\\s*\\.\\s*"?(?:buckets|objects)"?\\s+)((?:[\\s\\S]*?,\\s*)?${STORAGE_CHANGE}[\\s\\S]*)$`,
      "i",
    ),
    replacement: (_statement, [, start, changes]) =>
      removeItems(start!, changes!.split(/,(?![^(]*\))/), new RegExp(`^\\s*${STORAGE_CHANGE}`, "i")),
    change: "removed a change of a table of storage, which is that of the service",
  },
  {
    pattern: /^drop\s+index\s+(?:if\s+exists\s+)?"?storage"?\s*\.\s*"?bucketid_objname"?(?!["\w])/i,
    replacement: null,
    change: "removed a change of a table of storage, which is that of the service",
  },
  {
    pattern: /^(drop\s+index)\s+(?!if\b)("?storage"?\s*\.)/i,
    replacement: "$1 if exists $2",
    change: 'added "if exists" to an index of storage',
  },
  {
    pattern: new RegExp(
      `^(?:(?:alter|create)\\s+table\\s+(?:if\\s+(?:not\\s+)?exists\\s+)?(?:only\\s+)?${AUTH_VIEW}(?!\\s+(?:enable|disable)\\s+(?:\\w+\\s+)?trigger)|` +
        `create\\s+(?:unique\\s+)?index\\s[^(]*?\\son\\s+(?:only\\s+)?${AUTH_VIEW}|` +
        `comment\\s+on\\s+(?:table|column)\\s+${AUTH_VIEW}|(?:create|alter|drop)\\s+policy\\s+(?:if\\s+exists\\s+)?(?:"[^"]+"|\\w+)\\s+on\\s+${AUTH_VIEW})`,
      "i",
    ),
    replacement: null,
    change: "removed a statement about a table of Supabase Auth, which is a view here",
  },
  {
    pattern: new RegExp(
      `^(?:create\\s+(?:or\\s+replace\\s+)?(?:constraint\\s+)?trigger\\s(?:(?!\\son\\s)[\\s\\S])*\\son\\s+${UNFOLLOWED_VIEW}|` +
        `(?:drop|alter)\\s+trigger\\s(?:(?!\\son\\s)[\\s\\S])*\\son\\s+${UNFOLLOWED_VIEW}|` +
        `alter\\s+table\\s+(?:only\\s+)?${UNFOLLOWED_VIEW}\\s+(?:enable|disable)\\s+(?:\\w+\\s+)?trigger\\b)`,
      "i",
    ),
    replacement: null,
    change: ([statement]) =>
      `removed a trigger on a table of Supabase Auth that is a view here: ${statement.replace(/\s+/g, " ")}`,
  },
  {
    pattern:
      /^(?:create\s+table\s+(?:if\s+not\s+exists\s+)?"?(?:auth"?\s*\.\s*"?users|storage"?\s*\.\s*"?(?:buckets|objects))"?(?!["\w])|alter\s+table\s+(?:only\s+)?"?auth"?\s*\.\s*"?users"?\s+add\s+constraint\s+"?users_(?:pkey|phone_key|email_\w+)|(?:(?:create|alter)\s+sequence\s+(?:if\s+(?:not\s+)?exists\s+)?|(?:grant|revoke)\s[^(]*?\son\s+sequence\s+)"?auth"?\s*\.\s*"?refresh_tokens_id_seq)/i,
    replacement: null,
    change: "removed the definition of a table of Supabase, which exists",
  },
  {
    pattern: /^create\s+type\s+"?auth"?\s*\.\s*"?(aal_level|factor_status|factor_type)"?(?!["\w])/i,
    replacement: null,
    change: ([, type]) => `type auth.${type} exists`,
  },
];

const PUBLICATION = `"?supabase_realtime(?:_messages_publication)?"?`;

/** Wraps the statement in a block, because its publication is missing if the service does not stream changes. */
function publishOnce(statement: string): string {
  return `do $publish$ begin\n${statement};\nexception when duplicate_object or undefined_object then null; end $publish$`;
}

function createRole(statement: string, [, name]: RegExpExecArray): string {
  const text = name!.startsWith('"') ? name!.slice(1, -1) : name!.toLowerCase();
  return `do $role$ begin\nif not exists (select from pg_catalog.pg_roles where rolname = ${pg.escapeLiteral(text)}) then ${statement}; end if;\nend $role$`;
}

const RULES: readonly Rule[] = [
  ...SERVICE_RULES,
  {
    // VACUUM cannot run in a transaction.
    pattern: /^vacuum\b/i,
    replacement: null,
    change: "removed a vacuum",
  },
  {
    pattern: /^select\s+"?(?:pgtle|dbdev)"?\s*\./i,
    replacement: null,
    change: "removed a call of pg_tle: extensions of database.dev are not installed",
  },
  {
    // Each new table is added to the publication here.
    pattern: new RegExp(
      `^(alter\\s+publication\\s+${PUBLICATION}\\s+)add\\s+(?!tables\\b)(?:table\\s+)?([\\s\\S]+)$`,
      "i",
    ),
    replacement: (_statement, [, start, tables]) =>
      tables!
        .split(/,(?![^(]*\))/)
        .map((table) => publishOnce(`${start}add table ${table.trim().replace(/^table\s+/i, "")}`))
        .join(";\n"),
    change: "adds a table to the publication supabase_realtime only where it is not there yet",
  },
  {
    pattern: new RegExp(
      `^(alter\\s+publication\\s+${PUBLICATION}\\s+(set|owner|(add|drop)\\s+tables)\\b|(create|drop)\\s+publication\\s+(if\\s+exists\\s+)?${PUBLICATION}(?!["\\w]))`,
      "i",
    ),
    replacement: null,
    change: "removed a statement about the publication supabase_realtime, which has all tables here",
  },
  {
    // Roles belong to the cluster: the scratch database in which the project is tested leaves them there.
    pattern: /^create\s+(?:role|user|group)\s+("[^"]+"|\w+)/i,
    replacement: createRole,
    change: "creates a role only where it does not exist",
  },
  {
    pattern: new RegExp(`^(?:grant|revoke)\\s+${OWNERS}\\s+(?:to|from)\\s[\\s\\S]*\\sgranted\\s+by\\s+${OWNERS}`, "i"),
    replacement: null,
    change: "removed a membership in a role of Supabase",
  },
  {
    pattern: new RegExp(`^((?:grant|revoke)\\s[\\s\\S]*?)\\s+granted\\s+by\\s+${OWNERS}(?![\\w"])`, "i"),
    replacement: "$1",
    change: "the owner of the migrations grants what a role of Supabase has granted",
  },
  {
    pattern: new RegExp(`^set\\s+(?:(?:session|local)\\s+)?role\\s+(?:to\\s+|=\\s*)?'?${OWNERS}'?$`, "i"),
    replacement: "reset role",
    change: "statements of a role of Supabase run as the owner of the migrations",
  },
  {
    pattern: new RegExp(
      `(?<=^do\\b[\\s\\S]*[\\s;'])set\\s+(?:(?:session|local)\\s+)?role\\s+(?:to\\s+|=\\s*)?${OWNERS}(?=\\s*['";])`,
      "gi",
    ),
    replacement: "reset role",
    change: "statements of a role of Supabase run as the owner of the migrations",
  },
  {
    pattern: new RegExp(
      `^insert\\s+into\\s+("?)auth\\1\\s*\\.\\s*("?)(${SERVICE_ROWS})\\2(?!["\\w])|^select\\s+(pg_catalog\\.)?setval\\('("?)(auth|pgsodium|supabase_functions|cron|net|realtime)\\5\\.`,
      "i",
    ),
    replacement: null,
    change: ([, , , table]) => `removed ${table ? `rows of auth.${table}` : "the state of a sequence of Supabase"}`,
  },
  {
    // Accounts have two ids here; the key is the number.
    pattern: /\b(references\s+"?auth"?\s*\.\s*"?users"?)(?!["\w]|\s*\()/gi,
    replacement: "$1 (id)",
    change: 'added the column "id" to "references auth.users"',
  },
  {
    pattern: /\breferences\s+"?auth"?\s*\.\s*"?sessions"?(?!["\w])(\s*\(\s*"?id"?\s*\))?/gi,
    replacement: "references auth.token_sessions (id)",
    change: "sessions are rows of auth.token_sessions",
  },
  {
    pattern: /^((?:create(?:\s+unique)?|drop)\s+index|reindex\s+\w+)\s+concurrently\b/i,
    replacement: "$1",
    change: 'removed "concurrently" from an index',
  },
  {
    pattern: /^create\s+(unique\s+)?index\b[^(]*\busing\s+"?(hnsw|ivfflat)"?/i,
    replacement: (statement, [, , method]) =>
      `do $index$ begin\nif exists (select from pg_catalog.pg_am where amname = '${method!.toLowerCase()}') then execute $statement$${statement}$statement$; end if;\nend $index$`,
    change: ([, , method]) =>
      `creates an index of type ${method} only where Postgres has it; searches are exact without`,
  },
  {
    // Some schemas and functions exist here under the same name, such as auth.is_admin().
    pattern: /^create\s+(function\s+"?auth"?\s*\.)/i,
    replacement: "create or replace $1",
    change: 'added "or replace" to a function of schema auth',
  },
  {
    pattern: new RegExp(`^create\\s+schema\\s+(?!if\\b)("?(?:${SUPABASE_SCHEMAS})"?)(?![\\w"])`, "i"),
    replacement: "create schema if not exists $1",
    change: ([, schema]) => `schema ${schema} exists`,
  },
  {
    pattern: new RegExp(`^(create\\s+schema\\s.*?)\\s+authorization\\s+${OWNERS}`, "i"),
    replacement: "$1",
    change: "the owner of the migrations owns the schema",
  },
  {
    pattern: new RegExp(`\\b(owner\\s+to)\\s+${OWNERS}(?![\\w"])`, "gi"),
    replacement: "$1 current_user",
    change: "the owner of the migrations owns what belongs to a role of Supabase",
  },
  {
    pattern: new RegExp(
      `^(alter\\s+default\\s+privileges)\\s+for\\s+(?:role|user)\\s+((?:${NAME}\\s*,\\s*)*${OWNERS}(?![\\w"])(?:\\s*,\\s*${NAME})*)([\\s\\S]*)$`,
      "i",
    ),
    replacement: (_statement, [, start, roles, end]) => {
      const kept = roles!.split(",").filter((role) => !new RegExp(`^\\s*${OWNERS}\\s*$`, "i").test(role));
      return `${start} for role ${["current_user", ...kept.map((role) => role.trim())].join(", ")}${end}`;
    },
    change: "default privileges are those of the owner of the migrations",
  },
  {
    pattern: /^((?:alter|comment\s+on|(?:grant|revoke)\s[^;]*?\son)\s+database\s+)"?postgres"?(?![\w"])/i,
    replacement: '$1":DATABASE_NAME"',
    change: "the database has its own name",
  },
  {
    pattern:
      /(?<=^(?:do|create\s+(?:or\s+replace\s+)?(?:function|procedure))\b[\s\S]*\balter\s+database\s+)"?postgres"?(?=\s+(?:re)?set\b)/gi,
    replacement: '":DATABASE_NAME"',
    change: "the database has its own name",
  },
  {
    // Blocks that leave hosted databases as they are, or only change those.
    pattern: /\bcurrent_database\(\)\s*(=|<>|!=)\s*'postgres'/gi,
    replacement: "current_database() $1 ':DATABASE_NAME'",
    change: "the database has its own name",
  },
  {
    pattern:
      /^(?:create|drop|alter)\s+policy\s+(?:if\s+exists\s+)?"?cron_job(?:_run_details)?_policy"?\s+on\s+"?cron"?\s*\./i,
    replacement: null,
    change: "removed a statement about a policy of schema cron, which has it",
  },
  {
    pattern:
      /^(?:(?:create|drop|comment\s+on|alter)\s+event\s+trigger\s+"?(?:issue|pgrst)_\w+|(?:drop|comment\s+on|alter)\s+event\s+trigger\s+"?ensure_rls)"?/i,
    replacement: null,
    change: "removed an event trigger of Supabase",
  },
];

/** Removes or changes a statement that cannot run here as it is; null if it stays. */
export function adaptStatement(statement: string): AdaptedStatement | null {
  return applyRules(RULES, statement);
}

/** Adapts a statement of a block about an object of Supabase's services that this service has in another way; null if it stays. */
export function adaptServiceStatement(statement: string): AdaptedStatement | null {
  return applyRules(SERVICE_RULES, statement);
}

function applyRules(rules: readonly Rule[], statement: string): AdaptedStatement | null {
  let sql = statement;
  const changes: string[] = [];
  for (const { pattern, replacement, change } of rules) {
    const match = new RegExp(pattern.source, pattern.flags.replace("g", "")).exec(sql);
    if (!match) continue;
    changes.push(typeof change === "string" ? change : change(match));
    if (replacement === null) return { sql: "", changes };
    sql = typeof replacement === "string" ? sql.replace(pattern, replacement) : replacement(sql, match);
  }
  return changes.length === 0 ? null : { sql, changes };
}
