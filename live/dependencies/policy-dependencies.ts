import type { Caller } from "#accounts/identity";
import type { CatalogTable, Policy } from "#catalog";
import { inSnapshot } from "#catalog/loading";
import type { AsOwner } from "#postgres/database";
import { readJsonMembers } from "#runtime/json";
import type { PolicyClaims } from "./query-dependencies.ts";

export type { PolicyClaims };

/** True for a function `p` in the language `l` whose extension declares that it depends on its arguments alone. */
export const IS_IMMUTABLE_C = `l.lanname = 'c' and p.prokind = 'f' and p.provolatile = 'i' and exists (
      select from pg_catalog.pg_depend d where d.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass and d.objid = p.oid and d.deptype = 'e'
    )`;

/**
 * The texts that printed expressions leave out, of the objects in `used`: calls do not show the defaults of arguments, and operators do not name
 * their functions, of which built-in ones are not in pg_depend either.
 */
export function unprintedTexts(used: string): string {
  return `select pg_catalog.json_build_object('kind', 'condition', 'text', pg_catalog.pg_get_expr(p.proargdefaults, 0))
  from ${used} join pg_catalog.pg_proc p on used.class = 'pg_catalog.pg_proc'::pg_catalog.regclass and p.oid = used.object where p.proargdefaults is not null
  union all
  select pg_catalog.json_build_object('kind', 'condition', 'text', pg_catalog.format('%I(…)', p.proname))
  from ${used} join pg_catalog.pg_operator o on used.class = 'pg_catalog.pg_operator'::pg_catalog.regclass and o.oid = used.object
    join pg_catalog.pg_proc p on p.oid = o.oprcode and p.pronamespace = 'pg_catalog'::pg_catalog.regnamespace`;
}

// Built-in objects are not in pg_depend; they are in the texts. A dependency on a row type does not read its table.
const DEPENDENCIES = `
  with recursive used (class, object) as (
    select 'pg_catalog.pg_policy'::pg_catalog.regclass::pg_catalog.oid, oid from pg_catalog.pg_policy where polrelid = $1 and polname = any($2)
    union
    select next.class, next.object
    from used cross join lateral (
      select d.refclassid, d.refobjid from pg_catalog.pg_depend d
      where d.classid = used.class and d.objid = used.object and case
        when used.class = 'pg_catalog.pg_type'::pg_catalog.regclass then d.refclassid = 'pg_catalog.pg_type'::pg_catalog.regclass
        else d.refclassid in ('pg_catalog.pg_proc'::pg_catalog.regclass, 'pg_catalog.pg_operator'::pg_catalog.regclass, 'pg_catalog.pg_type'::pg_catalog.regclass)
          or d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass and d.refobjid <> $1
      end
      union all
      select 'pg_catalog.pg_constraint'::pg_catalog.regclass, c.oid from pg_catalog.pg_constraint c
      where used.class = 'pg_catalog.pg_type'::pg_catalog.regclass and c.contypid = used.object
      union all
      select 'pg_catalog.pg_type'::pg_catalog.regclass, a.atttypid
      from pg_catalog.pg_type t join pg_catalog.pg_attribute a on a.attrelid = t.typrelid and a.attnum > 0 and not a.attisdropped
      where used.class = 'pg_catalog.pg_type'::pg_catalog.regclass and t.oid = used.object
    ) as next (class, object)
    where used.class in ('pg_catalog.pg_policy'::pg_catalog.regclass, 'pg_catalog.pg_proc'::pg_catalog.regclass, 'pg_catalog.pg_operator'::pg_catalog.regclass, 'pg_catalog.pg_type'::pg_catalog.regclass,
      'pg_catalog.pg_constraint'::pg_catalog.regclass)
  )
  select pg_catalog.json_build_object('kind', 'condition', 'text', pg_catalog.pg_get_expr(p.polqual, p.polrelid)) as dependency
  from used join pg_catalog.pg_policy p on used.class = 'pg_catalog.pg_policy'::pg_catalog.regclass and p.oid = used.object where p.polqual is not null
  union all
  select pg_catalog.json_build_object('kind', 'condition', 'text', pg_catalog.pg_get_expr(c.conbin, 0))
  from used join pg_catalog.pg_constraint c on used.class = 'pg_catalog.pg_constraint'::pg_catalog.regclass and c.oid = used.object where c.conbin is not null
  union all
  select pg_catalog.json_build_object(
    'kind', 'function', 'name', pg_catalog.format('%I.%I', n.nspname, p.proname), 'body', pg_catalog.pg_get_function_sqlbody(p.oid),
    'isImmutableC', ${IS_IMMUTABLE_C},
    'isPlainJson', p.pronargs = 0 and p.prorettype in ('pg_catalog.json'::pg_catalog.regtype, 'pg_catalog.jsonb'::pg_catalog.regtype) and p.proconfig is null
  )
  from used join pg_catalog.pg_proc p on used.class = 'pg_catalog.pg_proc'::pg_catalog.regclass and p.oid = used.object
    join pg_catalog.pg_namespace n on n.oid = p.pronamespace join pg_catalog.pg_language l on l.oid = p.prolang
  union all
  ${unprintedTexts("used")}
  union all
  select pg_catalog.json_build_object('kind', 'relation', 'isSameForAll', c.relkind in ('r', 'p', 'm') and not c.relrowsecurity)
  from used join pg_catalog.pg_class c on used.class = 'pg_catalog.pg_class'::pg_catalog.regclass and c.oid = used.object`;

// A policy that reads whole rows depends on no single column.
const POLICY_COLUMNS = `
  select distinct a.attname as column
  from pg_catalog.pg_policy p
    join pg_catalog.pg_depend d on d.classid = 'pg_catalog.pg_policy'::pg_catalog.regclass and d.objid = p.oid and d.deptype = 'n'
      and d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass and d.refobjid = p.polrelid
    left join pg_catalog.pg_attribute a on a.attrelid = d.refobjid and a.attnum = d.refobjsubid and a.attnum > 0
  where p.polrelid = $1 and p.polcmd in ('*', 'r')`;

export type PolicyClaimsReader = {
  /** The claims that some of the table's policies read. */
  read(table: CatalogTable, policies: readonly Policy[]): Promise<PolicyClaims>;
  /** Call when the schema has changed: a function that a policy calls may read other claims, though the catalog is the same. */
  forget(): void;
};

/** The cache period, for databases without the event trigger for schema changes. */
const CACHE_MS = 5_000;

type CachedClaims = Map<string, { readonly claims: Promise<PolicyClaims>; readonly at: number }>;

/** Queries once per table, policies and cache period. */
export function makePolicyClaimsReader(asOwner: AsOwner): PolicyClaimsReader {
  let cache = new WeakMap<CatalogTable, CachedClaims>();
  const read = async (table: CatalogTable, policies: readonly Policy[]): Promise<PolicyClaims> => {
    const conditions = policies.flatMap(({ using }) => using ?? []);
    return findClaims(conditions, await readPolicyDependencies(asOwner, table, policies));
  };
  return {
    read: (table, policies) => {
      const ofTable: CachedClaims = cache.get(table) ?? new Map();
      cache.set(table, ofTable);
      const key = JSON.stringify(policies.map(({ name }) => name));
      const last = ofTable.get(key);
      if (last && performance.now() - last.at < CACHE_MS) return last.claims;
      // A failed query keeps the last result.
      const claims = last ? read(table, policies).catch(() => last.claims) : read(table, policies);
      ofTable.set(key, { claims, at: performance.now() });
      claims.catch(() => {
        if (ofTable.get(key)?.claims === claims) ofTable.delete(key);
      });
      return claims;
    },
    forget: () => {
      cache = new WeakMap();
    },
  };
}

// All claims, as Postgres prints the expression.
const SETTING = /current_setting\('request\.jwt\.claims'::text(?:, (?:true|false))?\)/.source;
const ALL_CLAIMS = `\\((?:${SETTING}|NULLIF\\(${SETTING}, ''::text\\))\\)::jsonb?`;
/** The body of a function that returns all claims. */
const RETURNS_ALL_CLAIMS = new RegExp(`^RETURN ${ALL_CLAIMS}$`);
/** The setting of one claim, which functions for earlier versions of PostgREST read. */
const ONE_SETTING = /current_setting\('request\.jwt\.claim\.(?<claim>\w+)'::text(?:, (?:true|false))?\)/g;
/** Any setting may hold claims, except one with a literal name that is the same for all callers of a role. */
const AMBIGUOUS_SETTING = /current_setting\((?!'(?!request\.jwt)[\w.]+'::text[,)])/i;
/** Built-in functions that run a text as SQL, or list settings. */
const AMBIGUOUS_FUNCTION =
  /\b(?:(?:query|cursor|table|schema|database)_to_xml\w*|ts_stat|ts_rewrite|pg_show_all_settings|pg_input_\w+)\(/i;

/** Works on the expressions as Postgres prints them: anything that is not clearly the reading of one claim counts as reading all. */
export function findClaims(conditions: readonly string[], dependencies: readonly PolicyDependency[]): PolicyClaims {
  const texts: string[] = [];
  const readers: string[] = [];
  for (const dependency of dependencies) {
    if (dependency.kind === "condition") texts.push(dependency.text);
    else if (dependency.kind === "relation") {
      if (!dependency.isSameForAll) return "all";
    } else if (isClaimsFunction(dependency)) readers.push(dependency.name);
    else if (dependency.body !== null) texts.push(dependency.body);
    else if (!dependency.isImmutableC) return "all";
  }
  // The dependencies must be those of the policies in the catalogue, which rows are checked by.
  if (!conditions.every((condition) => texts.includes(condition))) return "all";
  const calls = readers.map((name) => `${RegExp.escape(name)}\\(`).join("|") || NEVER_MATCHES;
  const source = `(?<![\\w$".])(?:${ALL_CLAIMS}|(?:${calls})\\))`;
  const oneClaim = new RegExp(`(?:${source}|\\( SELECT ${source} AS [\\w"]+\\)) ->>? '(?<claim>[^'\\\\]+)'::text`, "g");
  const claims = new Set<string>();
  for (const text of texts) {
    for (const { groups } of text.matchAll(oneClaim)) claims.add(groups!.claim!);
    for (const { groups } of text.matchAll(ONE_SETTING)) claims.add(groups!.claim!);
    const rest = text.replace(oneClaim, "").replace(ONE_SETTING, "");
    if (AMBIGUOUS_SETTING.test(rest) || AMBIGUOUS_FUNCTION.test(rest) || new RegExp(calls).test(rest)) return "all";
  }
  return claims;
}

const NEVER_MATCHES = "(?!)";

function isClaimsFunction({ body, isPlainJson }: FunctionDependency): boolean {
  return isPlainJson && body !== null && RETURNS_ALL_CLAIMS.test(body);
}

const claimsKeys = new WeakMap<Caller, WeakMap<ReadonlySet<string>, string>>();

/** Two callers of one role with the same key see the same rows. */
export function claimsKey(caller: Caller, read: PolicyClaims): string {
  if (read === "all") return caller.claimsText;
  const keys = claimsKeys.get(caller) ?? new WeakMap<ReadonlySet<string>, string>();
  claimsKeys.set(caller, keys);
  const key = keys.get(read) ?? makeClaimsKey(caller, read);
  keys.set(read, key);
  return key;
}

/** Uses the text of the claims, which keeps all digits of a number. A claim that is null differs from a missing one. */
function makeClaimsKey({ claimsText }: Caller, read: ReadonlySet<string>): string {
  const members = readJsonMembers(claimsText);
  return JSON.stringify([...read].map((name) => members.get(name) ?? null));
}

/** An object that the policies of a table use, directly or through functions, operators and domains. */
export type PolicyDependency =
  /** A condition of a policy or a domain, with all names qualified. */
  | { readonly kind: "condition"; readonly text: string }
  | FunctionDependency
  | {
      readonly kind: "relation";
      /** True if it has the same rows for every caller. */
      readonly isSameForAll: boolean;
    };

type FunctionDependency = {
  readonly kind: "function";
  /** The name by which conditions call the function. */
  readonly name: string;
  /** Null for a body that Postgres does not store parsed: what it uses is unknown. */
  readonly body: string | null;
  /** True if the function is written in C, part of an extension and immutable. */
  readonly isImmutableC: boolean;
  /** True if the function has no parameters, returns JSON and changes no setting. */
  readonly isPlainJson: boolean;
};

/** Reads the dependencies in one snapshot. */
function readPolicyDependencies(
  asOwner: AsOwner,
  { oid }: CatalogTable,
  policies: readonly Policy[],
): Promise<readonly PolicyDependency[]> {
  return asOwner((client) =>
    inSnapshot(client, async () => {
      const { rows } = await client.query<{ dependency: PolicyDependency }>(DEPENDENCIES, [
        oid,
        policies.map(({ name }) => name),
      ]);
      return rows.map(({ dependency }) => dependency);
    }),
  );
}

/** The columns that policies of a table read and that are not among these. Without their values the policies cannot be checked. */
export type FindMissingPolicyColumns = (table: CatalogTable, known: ReadonlySet<string>) => Promise<readonly string[]>;

type PolicyColumn = { readonly column: string | null };

/** Queries once per table of the catalogue, and only where a column is missing. */
export function makeFindMissingPolicyColumns(asOwner: AsOwner): FindMissingPolicyColumns {
  const columnsByTable = new WeakMap<CatalogTable, Promise<readonly (string | null)[]>>();
  const read = async ({ oid }: CatalogTable): Promise<readonly (string | null)[]> => {
    const { rows } = await asOwner((client) => client.query<PolicyColumn>(POLICY_COLUMNS, [oid]));
    return rows.map(({ column }) => column);
  };
  return async (table, available) => {
    // Generated columns are computed from the others.
    const missing = [...table.columns.values()].filter(({ name, generated }) => !generated && !available.has(name));
    if (missing.length === 0 || table.policies.length === 0) return [];
    const reading = columnsByTable.get(table) ?? read(table);
    columnsByTable.set(table, reading);
    reading.catch(() => columnsByTable.delete(table));
    const columns = await reading;
    return missing.map(({ name }) => name).filter((name) => columns.includes(name) || columns.includes(null));
  };
}
