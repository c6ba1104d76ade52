import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { splitStatements } from "#migrate";
import { quotedName } from "#postgres/client";
import { replaceInBlock } from "./adapt-block.ts";
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
  "wrappers",
];

/** Extensions that the embedded Postgres lacks, by the names that a project uses from them; many were only enabled in the dashboard. */
const USES: Readonly<Record<string, RegExp>> = {
  pg_hashids: /\bid_(?:en|de)code(?:_once)?\b|\bhash_(?:en|de)code\b/i,
  pgroonga: /\bpgroonga_\w+|\busing\s+"?pgroonga\b|&@|&\^/i,
  postgis: /\bst_\w+"?\s*\(|\b(?:geometry|geography|spatial_ref_sys|box2d|box3d)\b/i,
  rum: /\busing\s+"?rum\b|\brum_\w+/i,
  timescaledb: /\bcreate_hypertable\b|\btime_bucket\b|\btimescaledb\./i,
};
const ABOUT_EXTENSIONS = /\b(?:create|alter|comment\s+on)\s+extension\b[^;]*;/gi;
/** Packages of database.dev have a handle before their name, "handle@name" or "handle-name". */
const PACKAGE = /^(?!uuid-ossp$)\w+[@-]\w/;

/** The extensions of `USES` that none of the project's files uses. */
export function findUnused(texts: readonly string[]): string[] {
  const uses = texts.map((text) => text.replace(ABOUT_EXTENSIONS, ""));
  return Object.keys(USES).filter((name) => !uses.some((text) => USES[name]!.test(text)));
}

const HALFVEC_CASTS = `
create cast (:SCHEMA.vector as :SCHEMA.halfvec) with inout as implicit;
create cast (:SCHEMA.halfvec as :SCHEMA.vector) with inout as assignment;`;

const CREATE = /^create\s+extension\s+(?:if\s+not\s+exists\s+)?(?:"([^"]+)"|(\w+))([\s\S]*)$/i;
/** Comparisons of schemas name the version that Supabase had; Postgres has the scripts of its own only. */
const VERSION = /\s+version\s+(?:'[^']*'|"[^"]*"|[\w.]+)/i;
const SCHEMA = /\bschema\s+(?:"([^"]+)"|(\w+))/i;
const ABOUT = /^(?:comment\s+on|alter)\s+extension\s+"?([\w@-]+)"?/i;
const DROP = /^drop\s+extension\s+(?:if\s+exists\s+)?"?([\w-]+)"?(?![\w-])/i;
const MOVE = /^alter\s+extension\s+"?([\w-]+)"?\s+set\s+schema\s+(?:"([^"]+)"|(\w+))/i;

export type ExtensionSources = {
  /** The APIs whose schemas the project gets. */
  readonly apis: readonly SupabaseApi[];
  readonly folder: string;
  /** True if the project has columns of half precision. */
  readonly usesHalfvec: boolean;
  /** Extensions that the project may create without using them. */
  readonly unused: readonly string[];
};

/** Adapts a statement about an extension to this service; null for other statements and for those that stay. */
export async function adaptExtension(statement: string, sources: ExtensionSources): Promise<AdaptedStatement | null> {
  const [, moved, quotedPlace, place] = MOVE.exec(statement) ?? [];
  if (moved !== undefined && STAND_INS.includes(moved.toLowerCase()))
    return moveExtension(statement, sources, moved.toLowerCase(), quotedPlace ?? place!.toLowerCase());
  const about = ABOUT.exec(statement)?.[1]?.toLowerCase();
  if (about !== undefined && (apiOf(about) || STAND_INS.includes(about) || isOptional(about, sources)))
    return { sql: "", changes: [`removed a statement about the extension ${about}`] };
  const dropped = DROP.exec(statement)?.[1]?.toLowerCase();
  if (dropped !== undefined && STAND_INS.includes(dropped)) return dropExtension(statement, sources, dropped);
  if (dropped !== undefined)
    return /^drop\s+extension\s+if\b/i.test(statement)
      ? null
      : { sql: statement.replace(/extension/i, "$& if exists"), changes: ['added "if exists"'] };
  const [, quotedName, plainName, givenOptions = ""] = CREATE.exec(statement) ?? [];
  const given = quotedName ?? plainName;
  if (given === undefined) return null;
  const options = givenOptions.replace(VERSION, "");
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
    const standIn = await createStandIn(sources, name, schema);
    const missing = name === "http" ? "its functions raise an error when they are called" : "SQL stands in for it";
    return {
      sql: whereAvailable(name, created, standIn),
      changes: [`where Postgres lacks the extension ${name}, ${missing}`],
    };
  }
  if (isOptional(name, sources))
    return {
      sql: whereAvailable(name, created, null),
      changes: [`creates the extension ${name} only where Postgres has it`],
    };
  if (options !== givenOptions)
    return { sql: created, changes: [`creates the version of the extension ${name} that Postgres has`] };
  return /^create\s+extension\s+if\b/i.test(statement) ? null : { sql: created, changes: ['added "if not exists"'] };
}

function isOptional(name: string, { unused }: ExtensionSources): boolean {
  return OPTIONAL.includes(name) || unused.includes(name) || PACKAGE.test(name);
}

/** Extensions that are not in pg_extension although the service provides their objects. */
const UNLISTED = new RegExp(
  `'(?:${[...Object.values(SUPABASE_APIS).map(({ extension }) => extension), ...STAND_INS].join("|")})'`,
);
const LIST = /(?<=\b(?:from|join)\s+)(?:"?pg_catalog"?\s*\.\s*)?"?(pg_extension|pg_available_extensions)"?(?![\w".])/gi;
/** A statement about an extension in a block of PL/pgSQL, also in a string that is executed; comments and strings are masked. */
const IN_BLOCK =
  /(?<=(?:\b(?:begin|then|else|loop)|;)\s*)(?:execute\s+' *'(?=\s*;)|(?:create|alter|drop)\s+extension\b[^;]*)/gi;
const EXECUTED = /^execute\s+('|\$\w*\$)\s*((?:create|alter|drop)\s+extension\b[^';]*?);?\s*\1$/i;

/** Adapts a query for the extensions, or a block that creates, moves or drops one; null for other statements. */
export async function adaptExtensionUse(
  statement: string,
  sources: ExtensionSources,
): Promise<AdaptedStatement | null> {
  const changes: string[] = [];
  let sql = statement;
  if (UNLISTED.test(sql) && sql.search(LIST) >= 0) {
    sql = sql.replace(LIST, "extensions.$1");
    changes.push("extensions.pg_extension lists the extensions that have a stand-in, too");
  }
  if (/^do\b/i.test(sql)) {
    const block = await replaceInBlock(sql, IN_BLOCK, async (text) => {
      const adapted = await adaptExtension((EXECUTED.exec(text)?.[2] ?? text).trim(), sources);
      if (adapted === null) return null;
      const replacement = adapted.sql === "" ? "null" : `execute $statement$${adapted.sql}\n$statement$`;
      return { sql: replacement, changes: adapted.changes };
    });
    sql = block.sql;
    changes.push(...block.changes);
  }
  return changes.length === 0 ? null : { sql, changes };
}

/** The stand-in for a project that uses the type without creating its extension, which was enabled in the dashboard. */
export function vectorStandIn(sources: ExtensionSources): Promise<string> {
  return createStandIn(sources, "vector", "extensions").then((sql) =>
    whereAvailable("vector", "create extension if not exists vector schema extensions", sql),
  );
}

function apiOf(extension: string): SupabaseApi | undefined {
  return (Object.keys(SUPABASE_APIS) as SupabaseApi[]).find((api) => SUPABASE_APIS[api].extension === extension);
}

async function createStandIn(sources: ExtensionSources, name: string, schema: string): Promise<string> {
  return (await readStandIn(sources, name)).replaceAll(":SCHEMA", quotedName(schema)).trim();
}

/** The SQL of the stand-in, with `:SCHEMA` for its schema. */
async function readStandIn({ folder, usesHalfvec }: ExtensionSources, name: string): Promise<string> {
  const sql = await readFile(join(folder, `${name}.sql`), "utf8");
  // Values are texts: halfvec is the same type under another name.
  return name === "vector" && usesHalfvec ? `${sql}${sql.replaceAll("vector", "halfvec")}${HALFVEC_CASTS}` : sql;
}

const CREATED: readonly { readonly kind: string; readonly pattern: RegExp }[] = [
  { kind: "function", pattern: /^create function (:SCHEMA\.\w+\([\s\S]*?\)) returns/ },
  { kind: "aggregate", pattern: /^create aggregate (:SCHEMA\.\w+\([^)]*\))/ },
  { kind: "operator", pattern: /^create operator (:SCHEMA\.\S+ \([^)]*)/ },
  { kind: "operator class", pattern: /^create operator class (:SCHEMA\.\w+) .* (using \w+)/ },
  { kind: "operator family", pattern: /^create operator class (:SCHEMA\.\w+) .* (using \w+)/ },
  { kind: "type", pattern: /^create (?:type|domain) (:SCHEMA\.\w+)/ },
];

/** The objects of a stand-in as `alter` and `drop` name them. The types come last, because the names of the others contain them. */
function objectsOf(standIn: string): readonly { readonly kind: string; readonly name: string }[] {
  const statements = splitStatements(standIn);
  return CREATED.flatMap(({ kind, pattern }) => {
    const names = statements.flatMap(({ sql }) => {
      const [, name, method = ""] = pattern.exec(sql) ?? [];
      return name === undefined ? [] : [toObjectName(kind, `${name} ${method}`.trim())];
    });
    return [...new Set(names)].map((name) => ({ kind, name }));
  });
}

function toObjectName(kind: string, name: string): string {
  if (kind === "function") return name.replace(/ default [^,)]+/g, "");
  if (kind !== "operator") return name;
  const [, operator, left, right] = /^(\S+) \(leftarg = (\S+), rightarg = (\S+),/.exec(name)!;
  return `${operator} (${left}, ${right})`;
}

/** Runs the statement if Postgres has the extension, and otherwise the stand-in's SQL in its schema. */
function whereCreated(name: string, statement: string, standIn: string): string {
  return `do $extension$
declare v_schema pg_catalog.text := (select extnamespace::pg_catalog.regnamespace from extensions.pg_extension where extname = '${name}');
begin
if exists (select from pg_catalog.pg_extension where extname = '${name}') then execute $change$${statement}$change$;
elsif v_schema is not null then execute pg_catalog.replace($stand_in$
${standIn}
$stand_in$, ':SCHEMA', v_schema);
end if;
end $extension$`;
}

async function moveExtension(
  statement: string,
  sources: ExtensionSources,
  name: string,
  schema: string,
): Promise<AdaptedStatement> {
  const text = await readStandIn(sources, name);
  const place = quotedName(schema);
  const moves = objectsOf(text).map((object) => `alter ${object.kind} ${object.name} set schema ${place};`);
  // The bodies of functions name the schema.
  const functions = splitStatements(text)
    .filter(({ sql }) => sql.startsWith("create function"))
    .map(({ sql }) => `${sql.replace("create", "create or replace").replaceAll(":SCHEMA", place)};`);
  return {
    sql: whereCreated(name, statement, [...moves, ...functions].join("\n")),
    changes: [`moves the extension ${name}, or the SQL that stands in for it`],
  };
}

async function dropExtension(statement: string, sources: ExtensionSources, name: string): Promise<AdaptedStatement> {
  const drops = objectsOf(await readStandIn(sources, name))
    .filter(({ kind }) => kind === "function" || kind === "type")
    .reverse()
    .map((object) => `drop ${object.kind} if exists ${object.name} cascade;`);
  return {
    sql: whereCreated(name, statement, drops.join("\n")),
    changes: [`drops the extension ${name}, or the SQL that stands in for it`],
  };
}

/** Creates the extension if it is available, or else its stand-in once, whichever statement of the project runs first. */
function whereAvailable(name: string, created: string, standIn: string | null): string {
  const isMissing = `not exists (select from extensions.pg_extension where extname = '${name}')`;
  const otherwise = standIn === null ? "" : `\nelsif ${isMissing} then execute $stand_in$\n${standIn}\n$stand_in$;`;
  const available = `exists (select from pg_catalog.pg_available_extensions where name = '${name}')`;
  return `do $extension$ begin\nif ${available} then execute $create$${created}$create$;${otherwise}\nend if;\nend $extension$`;
}
