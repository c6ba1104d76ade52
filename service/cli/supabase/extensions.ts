import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { AdaptedStatement } from "./adapt-statement.ts";

/** The APIs of Supabase that `SUPABASE_APIS` names, and the extension whose schemas each has. */
export const SUPABASE_APIS = {
  cron: { extension: "pg_cron", schemas: "cron" },
  net: { extension: "pg_net", schemas: "net and supabase_functions" },
  vault: { extension: "supabase_vault", schemas: "vault" },
  queues: { extension: "pgmq", schemas: "pgmq and pgmq_public" },
  graphql: { extension: "pg_graphql", schemas: "graphql and graphql_public" },
} as const;
export type SupabaseApi = keyof typeof SUPABASE_APIS;

/** SQL that is used where Postgres lacks the extension. */
const STAND_INS: readonly string[] = ["vector", "http", "pgjwt", "pg_jsonschema"];
/** Extensions of dumps that tables and functions rarely need: created where Postgres has them. */
const OPTIONAL: readonly string[] = [
  "hypopg",
  "index_advisor",
  "pgaudit",
  "pg_repack",
  "pg_stat_monitor",
  "pg_stat_statements",
  "pg_tle",
  "pgrouting",
  "pgsodium",
  "pgtap",
  "plpgsql_check",
  "plv8",
  "supabase-dbdev",
  "wrappers",
];

const CREATE = /^create\s+extension\s+(?:if\s+not\s+exists\s+)?"?([\w-]+)"?(?![\w-])([\s\S]*)$/i;
const SCHEMA = /\bschema\s+(?:"([^"]+)"|(\w+))/i;
const ABOUT = /^(?:comment\s+on|alter)\s+extension\s+"?([\w-]+)"?/i;
const DROP = /^drop\s+extension\s+(?!if\b)/i;

export type ExtensionSources = {
  /** The APIs whose schemas the project gets. */
  readonly apis: readonly SupabaseApi[];
  readonly folder: string;
  /** The extensions of the statements before. */
  readonly created: Set<string>;
};

/** A statement about an extension, as it runs here; null for other statements and for those that stay. */
export async function adaptExtension(statement: string, sources: ExtensionSources): Promise<AdaptedStatement | null> {
  const about = ABOUT.exec(statement)?.[1]?.toLowerCase();
  if (about !== undefined && (apiOf(about) || STAND_INS.includes(about) || OPTIONAL.includes(about)))
    return { sql: "", changes: [`removed a statement about the extension ${about}`] };
  if (DROP.test(statement))
    return { sql: statement.replace(DROP, "drop extension if exists "), changes: ['added "if exists"'] };
  const [, given, options = ""] = CREATE.exec(statement) ?? [];
  if (given === undefined) return null;
  const name = given.toLowerCase();
  const api = apiOf(name);
  if (api !== undefined) {
    const { schemas } = SUPABASE_APIS[api];
    const reason = sources.apis.includes(api)
      ? `schema ${schemas} stands in for it`
      : `SUPABASE_APIS does not name ${api}, so statements that need it fail`;
    return { sql: "", changes: [`removed the extension ${name}: ${reason}`] };
  }
  const created = `create extension if not exists "${name}"${options}`;
  if (STAND_INS.includes(name)) {
    const [, quoted, plain] = SCHEMA.exec(options) ?? [];
    const schema = quoted ?? plain?.toLowerCase() ?? "public";
    const standIn = sources.created.has(name) ? null : await readStandIn(sources.folder, name, schema);
    sources.created.add(name);
    const missing = name === "http" ? "its functions raise an error when they are called" : "SQL stands in for it";
    return {
      sql: whereAvailable(name, created, standIn),
      changes: [`where Postgres lacks the extension ${name}, ${missing}`],
    };
  }
  if (OPTIONAL.includes(name))
    return {
      sql: whereAvailable(name, created, null),
      changes: [`creates the extension ${name} only where Postgres has it`],
    };
  return /^create\s+extension\s+if\b/i.test(statement) ? null : { sql: created, changes: ['added "if not exists"'] };
}

/** The stand-in for a project that uses the type without creating its extension, as one that was enabled in the dashboard. */
export function vectorStandIn(folder: string): Promise<string> {
  return readStandIn(folder, "vector", "extensions").then((sql) =>
    whereAvailable("vector", "create extension if not exists vector schema extensions", sql),
  );
}

function apiOf(extension: string): SupabaseApi | undefined {
  return (Object.keys(SUPABASE_APIS) as SupabaseApi[]).find((api) => SUPABASE_APIS[api].extension === extension);
}

async function readStandIn(folder: string, name: string, schema: string): Promise<string> {
  const text = await readFile(join(folder, `${name}.sql`), "utf8");
  return text.replaceAll(":SCHEMA", `"${schema.replaceAll('"', '""')}"`).trim();
}

/** A database that has the stand-in already, as one whose migration is applied twice, keeps it. */
function whereAvailable(name: string, created: string, standIn: string | null): string {
  const otherwise = standIn === null ? "" : `\nelse execute $stand_in$\n${standIn}\n$stand_in$;`;
  const available = `exists (select from pg_catalog.pg_available_extensions where name = '${name}')`;
  return `do $extension$ begin\nif ${available} then execute $create$${created}$create$;${otherwise}\nend if;\nend $extension$`;
}
