import { existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { splitStatements, writeMigration } from "#migrate";

export type ImportedFile = { readonly path: string; readonly text: string };

export type SupabaseImport = {
  readonly files: readonly ImportedFile[];
  /** Statements that were changed or removed, with their place. */
  readonly changes: readonly string[];
  /** The SQL function that adds claims to tokens, `schema.name`. */
  readonly claimsHook: string | null;
};

const MIGRATION_NAME = /^(\d+)_?(.*)\.sql$/;
/** A migration is one transaction here. */
const TRANSACTION_CONTROL = /^(begin|commit|end|start\s+transaction)(\s+(work|transaction))?$/i;
const CONCURRENTLY = /^((?:create(?:\s+unique)?|drop)\s+index|reindex\s+\w+)\s+concurrently\b/i;
/** Extensions that a Postgres elsewhere rarely has. */
const SUPABASE_EXTENSION =
  /^create\s+extension\s+(?:if\s+not\s+exists\s+)?"?(pg_graphql|pg_net|pg_cron|pgmq|pgsodium|pgjwt|supabase_vault|wrappers|hypopg|index_advisor)"?(?![\w-])/i;
/** A dump empties the search path of its connection, which the next migration would keep. */
const SEARCH_PATH = `select pg_catalog.set_config('search_path', '"$user", public, extensions', false);\n`;

/** The migrations and the seed of a Supabase project, as committed migrations after the given one. */
export async function importSupabase(projectFolder: string, base: string): Promise<SupabaseImport> {
  const folder = join(projectFolder, "supabase");
  const migrations = join(folder, "migrations");
  if (!existsSync(migrations)) {
    throw new Error(`There is no ${migrations}. Name the folder of the Supabase project with --from.`);
  }
  const names = (await readdir(migrations)).filter((name) => MIGRATION_NAME.test(name)).sort();
  const first = writeMigration({ previous: null, message: "supabase", body: base });
  const files: ImportedFile[] = [{ path: migrationPath(1, "supabase"), text: first.text }];
  const changes: string[] = [];
  const created: string[] = [];
  let previous = first.hash;
  for (const [index, name] of names.entries()) {
    const [, version, title] = MIGRATION_NAME.exec(name)!;
    const slug = title!.replace(/[^\w-]+/g, "-") || version!;
    const path = migrationPath(index + 2, slug);
    const { sql, changed } = adaptMigration(await readFile(join(migrations, name), "utf8"));
    const { hash, text } = writeMigration({ previous, message: slug, body: `${SEARCH_PATH}${sql}` });
    files.push({ path, text });
    changes.push(...changed.map((change) => `${name}: ${change}`));
    created.push(...[...sql.matchAll(CLAIMS_FUNCTION)].map(([, schema = "public", title]) => `${schema}.${title}`));
    previous = hash;
  }
  const hook = await findClaimsHook(folder, created.at(-1) ?? null);
  if (hook.change !== null) changes.push(hook.change);
  const seed = join(folder, "seed.sql");
  if (existsSync(seed)) {
    const { sql, changed } = adaptMigration(await readFile(seed, "utf8"));
    files.push({ path: "db/seed.sql", text: sql });
    changes.push(...changed.map((change) => `seed.sql: ${change}`));
  }
  return { files, changes, claimsHook: hook.name };
}

/** The name that Supabase's documentation gives to the function of the hook. */
const CLAIMS_FUNCTION =
  /create\s+(?:or\s+replace\s+)?function\s+(?:"?(\w+)"?\s*\.\s*)?"?(custom_access_token_hook)"?\s*\(/gi;
const HOOK_SECTION = /^\s*\[auth\.hook\.custom_access_token\]\s*$((?:\n(?!\s*\[).*)*)/m;
const HOOK_ADDRESS = /^\s*uri\s*=\s*["'](.*)["']/m;
const SQL_HOOK_ADDRESS = /^pg-functions:\/\/[^/]*\/([^/]+)\/([^/]+)$/;

/** The hook of config.toml; a project that is configured in the dashboard has only the function. */
async function findClaimsHook(
  folder: string,
  created: string | null,
): Promise<{ readonly name: string | null; readonly change: string | null }> {
  const config = join(folder, "config.toml");
  const text = existsSync(config) ? (await readFile(config, "utf8")).replaceAll("\r\n", "\n") : "";
  const section = HOOK_SECTION.exec(text)?.[1] ?? "";
  const isDisabled = /^\s*enabled\s*=\s*false/m.test(section);
  const address = isDisabled ? undefined : HOOK_ADDRESS.exec(section)?.[1];
  const [, schema, title] = SQL_HOOK_ADDRESS.exec(address ?? "") ?? [];
  const name = schema && title ? `${schema}.${title}` : created;
  if (address !== undefined && !schema)
    return {
      name: null,
      change: `config.toml: the hook ${address} is not called; CLAIMS_HOOK names SQL functions only`,
    };
  if (name === null) return { name, change: null };
  if (isDisabled) return { name: null, change: `config.toml disables the hook; to use it, set CLAIMS_HOOK=${name}` };
  return { name, change: `package.json: set CLAIMS_HOOK to ${name}, which adds claims to tokens` };
}

function migrationPath(number: number, slug: string): string {
  return `db/migrations/committed/${String(number).padStart(6, "0")}-${slug}.sql`;
}

/** Removes or changes the statements that cannot run here, from the last to the first, so that offsets stay valid. */
function adaptMigration(text: string): { readonly sql: string; readonly changed: string[] } {
  let sql = text.replaceAll("\r\n", "\n");
  const changed: string[] = [];
  for (const { start, sql: statement } of splitStatements(sql).reverse()) {
    const adapted = adaptStatement(statement);
    if (adapted === null) continue;
    const rest = sql.slice(start + statement.length);
    sql = sql.slice(0, start) + adapted.sql + (adapted.sql === "" ? rest.replace(/^\s*;[ \t]*\n?/, "") : rest);
    changed.unshift(adapted.change);
  }
  return { sql, changed };
}

/** Accounts have two ids here; the key is the number. */
const USERS_WITHOUT_COLUMN = /\b(references\s+"?auth"?\s*\.\s*"?users"?)(?!["\w]|\s*\()/gi;
/** Each new table is added to the publication here. */
const PUBLICATION = /^alter\s+publication\s+"?supabase_realtime"?\s+(add|set)\b/i;
const CREATE_PUBLICATION = /^create\s+publication\s+"?supabase_realtime"?(?!["\w])/i;
/** Identities have another form here, and an account with a password needs none. */
const IDENTITIES = /^insert\s+into\s+"?auth"?\s*\.\s*"?identities"?(?!["\w])/i;

/** Null if the statement stays as it is. */
function adaptStatement(statement: string): { readonly sql: string; readonly change: string } | null {
  if (PUBLICATION.test(statement) || CREATE_PUBLICATION.test(statement)) {
    return {
      sql: "",
      change: "removed a statement about the publication supabase_realtime, which has all tables here",
    };
  }
  if (IDENTITIES.test(statement)) return { sql: "", change: "removed rows of auth.identities" };
  if (statement.search(USERS_WITHOUT_COLUMN) >= 0) {
    const sql = statement.replace(USERS_WITHOUT_COLUMN, "$1 (id)");
    return { sql, change: 'added the column "id" to "references auth.users"' };
  }
  if (TRANSACTION_CONTROL.test(statement)) return { sql: "", change: `removed "${statement}"` };
  const [, extension] = SUPABASE_EXTENSION.exec(statement) ?? [];
  if (extension) return { sql: "", change: `removed the extension ${extension}` };
  if (!CONCURRENTLY.test(statement)) return null;
  return { sql: statement.replace(CONCURRENTLY, "$1"), change: `removed "concurrently" from an index` };
}
