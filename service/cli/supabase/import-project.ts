import { existsSync, globSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import pg from "pg";
import { isOneTransaction, isTransactionBoundary, splitStatements, writeMigration } from "#migrate";
import { adaptInBlock, adaptRepeats } from "./adapt-block.ts";
import { type AdaptedStatement, AUTH_VIEWS, adaptStatement } from "./adapt-statement.ts";
import { replaceCopies } from "./copy-rows.ts";
import {
  adaptExtension,
  adaptExtensionUse,
  type ExtensionSources,
  findUnused,
  SUPABASE_APIS,
  type SupabaseApi,
  vectorStandIn,
} from "./extensions.ts";
import { importHooks } from "./sign-in-hooks.ts";
import { type ImportedConfig, importConfig } from "./supabase-config.ts";

const AUTH_TABLE = new RegExp(`(?<![\\w."])("?)auth\\1\\s*\\.\\s*("?)(${AUTH_VIEWS})\\2(?![\\w"])`, "gi");
/** Rows are written to the table behind the view, so that "on conflict" works, and without the triggers that a seed may switch off. */
const IDENTITY_INSERT = /(\binsert\s+into\s+)("?)auth\2\s*\.\s*("?)identities\3(?![\w"])/gi;

/** The table of a trigger statement. Views have no triggers after a row: a project's triggers are on tables that follow the service's. */
const TRIGGER_TABLE =
  /(\balter\s+table\s+(?:only\s+)?supabase_auth\.(?=\w+\s+(?:enable|disable)\s+(?:\w+\s+)?trigger\b)|\btrigger\s+(?:if\s+exists\s+)?(?:"[^"]+"|\w+|%I)\s+(?:(?:before|after)\s[^;]*?\s)?on\s+supabase_auth\.)(sessions|identities|mfa_factors|audit_log_entries)\b/gi;
const MIRRORS: Readonly<Record<string, string>> = {
  sessions: "session_mirror",
  identities: "identity_mirror",
  mfa_factors: "mfa_factor_mirror",
  audit_log_entries: "audit_log_mirror",
};

/** Renames tables of Supabase Auth, which are views of schema `supabase_auth` here, also in strings and bodies of functions. */
function renameAuthTables(sql: string): string {
  return sql
    .replace(IDENTITY_INSERT, "$1supabase_auth.identity_rows")
    .replace(AUTH_TABLE, (match, _schema, _table, table: string, offset: number) =>
      /\breferences\s+$/i.test(sql.slice(Math.max(0, offset - 20), offset))
        ? match
        : `supabase_auth.${table.toLowerCase()}`,
    )
    .replace(TRIGGER_TABLE, (_match, start: string, table: string) => `${start}${MIRRORS[table.toLowerCase()]}`);
}

export type ImportedFile = { readonly path: string; readonly text: string };

type SupabaseImport = {
  readonly files: readonly ImportedFile[];
  /** Statements that were changed or removed, with their place, and settings without a counterpart. */
  readonly changes: readonly string[];
  /** The settings for package.json. */
  readonly settings: Readonly<Record<string, string>>;
};

type ImportOptions = {
  /** The folder that contains `supabase/migrations`. */
  readonly projectFolder: string;
  readonly templateFolder: string;
  readonly apis: readonly SupabaseApi[];
};

/** A file of `supabase/migrations`. */
type SourceFile = { readonly name: string; readonly text: string };

const MIGRATION_NAME = /^(\d+)(?:[_-](.*))?\.sql$/;
/** The file of the template that belongs to an API. */
const API_FILES: Readonly<Record<SupabaseApi, string>> = {
  cron: "100-cron.sql",
  net: "110-net.sql",
  vault: "120-vault.sql",
  queues: "130-queues.sql",
  graphql: "140-graphql.sql",
};
const ROLES_FILE = "roles.sql";
/** Resets the search path, the role and other settings, which a dump changes and the next file would keep. */
const SETTINGS = `select pg_catalog.set_config('search_path', '"$user", public, extensions', false);
reset role; reset row_security; reset check_function_bodies; reset session_replication_role;
`;
/** Commands of psql in dumps, which Supabase's command leaves out, too. */
const PSQL_COMMAND = /^\\(un)?restrict\b.*$/gm;
const VECTOR_TYPE = /\b(?:vector|halfvec)\s*\(\s*\d+\s*\)/i;

/** Imports the migrations and the seed of a Supabase project as committed migrations, after the template's. */
export async function importSupabase({ projectFolder, templateFolder, apis }: ImportOptions): Promise<SupabaseImport> {
  const folder = join(projectFolder, "supabase");
  requireProject(folder);
  const sources = [...(await readRoles(folder)), ...(await readSources(folder))];
  const config = await readConfigFile(folder);
  const changes: string[] = [...config.changes, ...(await findSkipped(folder))];
  const extensions: ExtensionSources = {
    apis,
    folder: join(templateFolder, "extensions"),
    usesHalfvec: sources.some(({ text }) => /\bhalfvec\b/i.test(text)),
    unused: findUnused(sources.map(({ text }) => text)),
  };
  const seeds = config.seeds.flatMap((pattern) => globSync(pattern, { cwd: folder }).sort());
  const seedTexts = await Promise.all([...new Set(seeds)].map((name) => readText(join(folder, name))));

  const base = [await readTemplateSql(join(templateFolder, "sql"), apis), ...config.buckets];
  const usesVector = sources.findIndex(({ text }) => VECTOR_TYPE.test(text));
  const createsVector = sources.findIndex(({ text }) =>
    /create\s+extension\s+(if\s+not\s+exists\s+)?"?vector\b/i.test(text),
  );
  if (usesVector >= 0 && (createsVector < 0 || createsVector > usesVector)) {
    base.push(`${await vectorStandIn(extensions)};`);
    changes.push("the type vector is used before its extension is created: the first migration creates it");
  }
  const first = writeMigration({ previous: null, message: "supabase", body: base.join("\n\n") });
  const files: ImportedFile[] = [{ path: migrationPath(1, "supabase"), text: first.text }];
  let previous = first.hash;
  const adapted: string[] = [];
  for (const [index, { name, text: source }] of sources.entries()) {
    const [, version, title = ""] = MIGRATION_NAME.exec(name) ?? [];
    const slug = title.replace(/[^\w-]+/g, "-") || version || "roles";
    const { sql, changed } = await adaptFile(source, extensions);
    const { hash, text } = writeMigration({
      previous,
      message: slug,
      body: `${SETTINGS}${endLastStatement(sql)}${version === undefined ? "" : recordVersion(version, title)}`,
    });
    files.push({ path: migrationPath(index + 2, slug), text });
    changes.push(...changed.map((change) => `${name}: ${change}`));
    adapted.push(sql);
    previous = hash;
  }
  const hooks = importHooks(config.hooks, adapted);
  changes.push(...hooks.changes);
  if (hooks.migration !== null) {
    const { text } = writeMigration({ previous, message: "sign-in-hooks", body: hooks.migration });
    files.push({ path: migrationPath(files.length + 1, "sign-in-hooks"), text });
  }
  if (seedTexts.length > 0) {
    const { sql, changed } = await adaptFile(seedTexts.map(endLastStatement).join(SETTINGS), extensions);
    files.push({ path: "db/seed.sql", text: sql });
    changes.push(...changed.map((change) => `seed.sql: ${change}`));
  }
  const settings = {
    SUPABASE_APIS: apis.join(","),
    ...config.settings,
    ...hooks.settings,
  };
  return { files, changes, settings };
}

/** Parses the value of `SUPABASE_APIS`; all APIs if it is not set. */
export function parseApis(names: string | undefined): SupabaseApi[] {
  const all = Object.keys(SUPABASE_APIS) as SupabaseApi[];
  if (names === undefined) return all;
  const wanted = names
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "");
  const unknown = wanted.find((name) => !all.includes(name as SupabaseApi));
  if (unknown !== undefined) throw new Error(`SUPABASE_APIS has no "${unknown}". It names some of ${all.join(", ")}.`);
  return all.filter((api) => wanted.includes(api));
}

async function readSources(folder: string): Promise<SourceFile[]> {
  const names = (await listMigrations(folder)).filter((name) => MIGRATION_NAME.test(name));
  return Promise.all(names.map(async (name) => ({ name, text: await readText(join(folder, "migrations", name)) })));
}

/** Lists the files of `supabase/migrations`, which a project that was made in the dashboard does not have. */
async function listMigrations(folder: string): Promise<string[]> {
  const migrations = join(folder, "migrations");
  return existsSync(migrations) ? (await readdir(migrations)).sort() : [];
}

const PROJECT_FILES = ["config.toml", "seed.sql", ROLES_FILE];

function requireProject(folder: string): void {
  if (["migrations", ...PROJECT_FILES].some((name) => existsSync(join(folder, name)))) return;
  throw new Error(
    `${folder} has none of migrations, ${PROJECT_FILES.join(", ")}. Name the folder of the Supabase project with --from.`,
  );
}

const NO_MIGRATIONS =
  'there is no supabase/migrations, so no tables are created: write them with "supabase db pull" first, if the project has some';

/** Lists the skipped files, which Supabase's command skips, too. */
async function findSkipped(folder: string): Promise<string[]> {
  if (!existsSync(join(folder, "migrations"))) return [NO_MIGRATIONS];
  return (await listMigrations(folder))
    .filter((name) => name.endsWith(".sql") && !MIGRATION_NAME.test(name))
    .map((name) => `${name}: skipped, because its name does not begin with a version and "_"`);
}

/** Reads the file that Supabase's command runs before the migrations. */
async function readRoles(folder: string): Promise<SourceFile[]> {
  const file = join(folder, ROLES_FILE);
  return existsSync(file) ? [{ name: ROLES_FILE, text: await readText(file) }] : [];
}

async function readText(file: string): Promise<string> {
  return (await readFile(file, "utf8"))
    .replace(/^\uFEFF/, "")
    .replaceAll("\r\n", "\n")
    .replace(PSQL_COMMAND, "");
}

async function readConfigFile(folder: string): Promise<ImportedConfig> {
  const file = join(folder, "config.toml");
  return importConfig(existsSync(file) ? await readFile(file, "utf8") : "");
}

async function readTemplateSql(folder: string, apis: readonly SupabaseApi[]): Promise<string> {
  const left = Object.entries(API_FILES).filter(([api]) => !apis.includes(api as SupabaseApi));
  const names = (await readdir(folder)).filter((name) => !left.some(([, file]) => file === name)).sort();
  return (await Promise.all(names.map((name) => readFile(join(folder, name), "utf8")))).join("\n");
}

function recordVersion(version: string, title: string): string {
  return `reset role; insert into supabase_migrations.schema_migrations (version, name) values ('${version}', ${pg.escapeLiteral(title)}) on conflict do nothing;`;
}

/** Ends the last statement of a text without a final semicolon, so that the text that follows is a statement of its own. */
function endLastStatement(text: string): string {
  const last = splitStatements(text).at(-1);
  const rest = last === undefined ? ";" : text.slice(last.start + last.sql.length);
  return `${text.trimEnd()}\n${rest.replace(/--[^\n]*|\/\*[\s\S]*?\*\//g, "").includes(";") ? "" : ";\n"}`;
}

const REMOVED_BOUNDARY: AdaptedStatement = {
  sql: "",
  changes: ['removed "begin" and "commit": the migration is one transaction'],
};

/** Removes or changes the statements that cannot run here, from the last to the first, so that offsets stay valid. */
async function adaptFile(
  source: string,
  extensions: ExtensionSources,
): Promise<{ readonly sql: string; readonly changed: string[] }> {
  const changed: string[] = [];
  const text = replaceCopies(source);
  if (text !== source) changed.push('rows of "copy ... from stdin" are inserted');
  const replacements: Replacement[] = [];
  // Without "begin" and "commit", the file is in the transaction of its migration, which also records it.
  const isOne = isOneTransaction(text);
  for (const { start, sql: statement } of splitStatements(text)) {
    const isBoundary = isOne && isTransactionBoundary({ sql: statement });
    const found = isBoundary ? REMOVED_BOUNDARY : await adapt(statement, extensions);
    if (found === null) continue;
    replacements.push({ start, length: statement.length, sql: found.sql });
    changed.push(...found.changes);
  }
  let adapted = text;
  for (const replacement of replacements.reverse()) adapted = replaceAt(adapted, replacement);
  const sql = renameAuthTables(adapted);
  if (sql !== adapted)
    changed.push("tables of Supabase Auth, such as auth.identities, are views of schema supabase_auth");
  return { sql, changed: [...new Set(changed)] };
}

async function adapt(statement: string, extensions: ExtensionSources): Promise<AdaptedStatement | null> {
  const extension = await adaptExtension(statement, extensions);
  if (extension !== null) return extension;
  let sql = statement;
  const changes: string[] = [];
  for (const rule of [
    (text: string) => adaptExtensionUse(text, extensions),
    adaptRepeats,
    adaptInBlock,
    adaptStatement,
  ]) {
    const adapted = await rule(sql);
    if (adapted === null) continue;
    sql = adapted.sql;
    changes.push(...adapted.changes);
  }
  return changes.length === 0 ? null : { sql, changes };
}

type Replacement = { readonly start: number; readonly length: number; readonly sql: string };

function replaceAt(text: string, { start, length, sql }: Replacement): string {
  const rest = text.slice(start + length);
  return text.slice(0, start) + sql + (sql === "" ? rest.replace(/^\s*;[ \t]*\n?/, "") : rest);
}

function migrationPath(number: number, slug: string): string {
  return `db/migrations/committed/${String(number).padStart(6, "0")}-${slug}.sql`;
}
