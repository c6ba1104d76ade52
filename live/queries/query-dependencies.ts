import type pg from "pg";
import type { AsOwner, Statement } from "#postgres/database";
import { findClaims, IS_IMMUTABLE_C, type PolicyClaims, type PolicyDependency } from "./policy-dependencies.ts";
import { findRowFilters, type RowFilter, type UsedTree } from "./row-filters.ts";

/** A relation that a query reads, directly or through views, functions and policies. */
type ReadRelation = {
  readonly oid: number;
  /** Whether only the query itself reads it, once: rows that its filter excludes then change nothing. */
  readonly isReadOnce: boolean;
  /** The columns of it that its policies read; null if not only columns decide. */
  readonly policyColumns: readonly string[] | null;
};

/** What the result of a query depends on besides its values. */
export type QueryDependencies = {
  readonly relations: readonly ReadRelation[];
  /** The claims that decide the result. */
  readonly claims: PolicyClaims;
  /** Whether it depends on settings of the single request, such as its headers. */
  readonly readsRequest: boolean;
  /** Why the result cannot be kept up to date; empty if it can. */
  readonly obstacles: readonly string[];
  /** The oids of what decides which rows a caller sees. */
  readonly deciding: DecidingObjects;
  readonly fingerprint: string;
  /** Which rows of some relations can change the result at all. */
  readonly rowFilters: readonly RowFilter[];
};

type DecidingObjects = { readonly relations: readonly number[]; readonly functions: readonly number[] };

type StatementToRead = Pick<Statement, "text"> & { readonly role: string; readonly searchPath: string };

const PROCEDURE = "pg_temp.live_query";
/** A function has at most 100 parameters. */
const MAX_PARAMETERS = 100;

const CLASS = (name: string) => `'pg_catalog.${name}'::pg_catalog.regclass`;
const FIRST_USER_OID = 16_384;

/** The parsed query in a text of a node tree: relations in `from`, not those of permissions. */
const READ_IN_TREE = "':rtekind 0 :relid (\\d+)'";
const NAME = `(?:"((?:[^"]|"")+)"|([[:alpha:]_][\\w$]*))`;
/** Names, with or without a schema, in the text of a function that Postgres does not parse before it runs. */
const NAMES = `'${NAME}(?:\\s*\\.\\s*${NAME})?'`;
const CALLED_NAMES = `'${NAME}(?:\\s*\\.\\s*${NAME})?\\s*\\('`;

/** Whether the text of the function `p` names an object: with its schema, or without where that is on a search path of `$4`. */
const isNamed = (pattern: string, schema: string, name: string) => `exists (
  select from pg_catalog.regexp_matches(p.prosrc, ${pattern}, 'g') as found
    cross join lateral (select coalesce(pg_catalog.replace(found[1], '""', '"'), pg_catalog.lower(found[2])) as first,
      coalesce(pg_catalog.replace(found[3], '""', '"'), pg_catalog.lower(found[4])) as second) as names
  where case when second is null
    then first = ${name} and pg_catalog.strpos($4::pg_catalog.text, ${schema}) > 0
    else first = ${schema} and second = ${name} end)`;

/** Whether Postgres has parsed all reads of the table `c`, and no other table has rows of it. */
const HAS_ONLY_PARSED_READS = `c.relkind = 'r' and not c.relhassubclass
      and not exists (select from pg_catalog.pg_inherits i where i.inhrelid = c.oid)
      and not exists (
        select from used as other join pg_catalog.pg_proc p on other.class = ${CLASS("pg_proc")} and p.oid = other.object
        where p.oid >= ${FIRST_USER_OID} and p.prosqlbody is null
          and ${isNamed(NAMES, "n.nspname::pg_catalog.text", "c.relname::pg_catalog.text")}
      )`;

/** Whether the policy `p` of the table `c` is for the role, or for one that functions and views read as. */
const IS_APPLIED = `(0 operator(pg_catalog.=) any(p.polroles) or exists (
      select from pg_catalog.unnest(p.polroles) as applies (role)
      where pg_catalog.pg_has_role($3, applies.role, 'usage') or exists (
        select from deputies where pg_catalog.pg_has_role(deputies.role, applies.role, 'usage')
          and (c.relforcerowsecurity or not pg_catalog.pg_has_role(deputies.role, c.relowner, 'usage'))
      )
    ))`;

// The statement is the body of a procedure, so pg_depend has what it reads. Relations of the system are pinned, and not in it.
const DEPENDENCIES = `
  with recursive used (class, object) as (
    select ${CLASS("pg_proc")}::pg_catalog.oid, $1::pg_catalog.oid
    union
    select next.class, next.object from used cross join lateral (
      select d.refclassid, d.refobjid from pg_catalog.pg_depend d
      where d.classid = used.class and d.objid = used.object
        and used.class in (${["pg_proc", "pg_operator", "pg_type", "pg_constraint", "pg_policy", "pg_rewrite"].map(CLASS).join(", ")})
        and (d.refclassid in (${["pg_proc", "pg_operator", "pg_type"].map(CLASS).join(", ")})
          or d.refclassid = ${CLASS("pg_class")} and used.class <> ${CLASS("pg_type")})
      union all
      select ${CLASS("pg_constraint")}, c.oid from pg_catalog.pg_constraint c
      where used.class = ${CLASS("pg_type")} and c.contypid = used.object
      union all
      select ${CLASS("pg_rewrite")}, r.oid from pg_catalog.pg_rewrite r
      where used.class = ${CLASS("pg_class")} and r.ev_class = used.object
      union all
      select ${CLASS("pg_policy")}, p.oid from pg_catalog.pg_policy p join pg_catalog.pg_class c on c.oid = p.polrelid
      where used.class = ${CLASS("pg_class")} and p.polrelid = used.object and c.relrowsecurity and p.polcmd in ('*', 'r')
      union all
      select ${CLASS("pg_class")}, i.inhrelid from pg_catalog.pg_inherits i
      where used.class = ${CLASS("pg_class")} and i.inhparent = used.object
      union all
      select ${CLASS("pg_class")}, c.oid
      from pg_catalog.pg_proc p join pg_catalog.pg_class c on c.relkind in ('r', 'p', 'v', 'm', 'f') and c.oid >= ${FIRST_USER_OID}
        join pg_catalog.pg_namespace n on n.oid = c.relnamespace
      where used.class = ${CLASS("pg_proc")} and p.oid = used.object and p.oid >= ${FIRST_USER_OID} and p.prosqlbody is null
        and ${isNamed(NAMES, "n.nspname::pg_catalog.text", "c.relname::pg_catalog.text")}
      union all
      select ${CLASS("pg_proc")}, f.oid
      from pg_catalog.pg_proc p join pg_catalog.pg_proc f on f.oid >= ${FIRST_USER_OID}
        join pg_catalog.pg_namespace n on n.oid = f.pronamespace
      where used.class = ${CLASS("pg_proc")} and p.oid = used.object and p.oid >= ${FIRST_USER_OID} and p.prosqlbody is null
        and ${isNamed(CALLED_NAMES, "n.nspname::pg_catalog.text", "f.proname::pg_catalog.text")}
    ) as next (class, object)
  ), trees (tree) as (
    select p.prosqlbody::pg_catalog.text from used join pg_catalog.pg_proc p on used.class = ${CLASS("pg_proc")} and p.oid = used.object
    where p.oid <> $1 and p.prosqlbody is not null
    union all
    select p.polqual::pg_catalog.text from used join pg_catalog.pg_policy p on used.class = ${CLASS("pg_policy")} and p.oid = used.object
    union all
    select r.ev_action::pg_catalog.text from used join pg_catalog.pg_rewrite r on used.class = ${CLASS("pg_rewrite")} and r.oid = used.object
  ), reads_of_others (oid) as (
    select found[1]::pg_catalog.oid from trees cross join lateral pg_catalog.regexp_matches(tree, ${READ_IN_TREE}, 'g') as found
  ), own_reads (oid, times) as (
    select found[1]::pg_catalog.oid, pg_catalog.count(*)
    from pg_catalog.pg_proc p cross join lateral pg_catalog.regexp_matches(p.prosqlbody::pg_catalog.text, ${READ_IN_TREE}, 'g') as found
    where p.oid = $1 group by 1
  ), deputies (role) as (
    -- As whom functions and views read, where policies apply to them.
    select r.oid from pg_catalog.pg_roles r where not r.rolsuper and not r.rolbypassrls and r.oid in (
      select p.proowner from used join pg_catalog.pg_proc p on used.class = ${CLASS("pg_proc")} and p.oid = used.object where p.prosecdef
      union
      select c.relowner from used join pg_catalog.pg_class c on used.class = ${CLASS("pg_class")} and c.oid = used.object
    )
  ), published (schema, name) as (
    select schemaname, tablename from pg_catalog.pg_publication_tables where pubname = $2
  )
  select pg_catalog.json_build_object('kind', 'condition', 'text', pg_catalog.pg_get_expr(p.polqual, p.polrelid),
    'isOfOthers', not ${IS_APPLIED}
  ) as dependency
  from used join pg_catalog.pg_policy p on used.class = ${CLASS("pg_policy")} and p.oid = used.object
    join pg_catalog.pg_class c on c.oid = p.polrelid
  where p.polqual is not null
  union all
  select pg_catalog.json_build_object('kind', 'condition', 'text', pg_catalog.pg_get_expr(c.conbin, 0))
  from used join pg_catalog.pg_constraint c on used.class = ${CLASS("pg_constraint")} and c.oid = used.object where c.conbin is not null
  union all
  select pg_catalog.json_build_object('kind', 'condition', 'text', pg_catalog.pg_get_viewdef(c.oid))
  from used join pg_catalog.pg_class c on used.class = ${CLASS("pg_class")} and c.oid = used.object where c.relkind = 'v'
  union all
  select pg_catalog.json_build_object(
    'kind', 'function', 'oid', p.oid::pg_catalog.int8, 'name', pg_catalog.format('%I.%I', n.nspname, p.proname), 'body', pg_catalog.pg_get_function_sqlbody(p.oid),
    'isImmutableC', ${IS_IMMUTABLE_C},
    'isPlainJson', p.pronargs = 0 and p.prorettype in ('pg_catalog.json'::pg_catalog.regtype, 'pg_catalog.jsonb'::pg_catalog.regtype) and p.proconfig is null,
    'language', l.lanname, 'volatility', p.provolatile, 'kindOf', p.prokind, 'isStatement', p.oid = $1,
    'source', case when l.lanname in ('sql', 'plpgsql') then p.prosrc end,
    'isVisible', pg_catalog.has_function_privilege($3, p.oid, 'execute')
  )
  from used join pg_catalog.pg_proc p on used.class = ${CLASS("pg_proc")} and p.oid = used.object
    join pg_catalog.pg_namespace n on n.oid = p.pronamespace join pg_catalog.pg_language l on l.oid = p.prolang
  union all
  select pg_catalog.json_build_object(
    'kind', 'relation', 'oid', c.oid::pg_catalog.int8, 'name', pg_catalog.format('%I.%I', n.nspname, c.relname), 'relkind', c.relkind,
    'isVisible', pg_catalog.has_any_column_privilege($3, c.oid, 'select'),
    'hasKey', case c.relreplident when 'n' then false
      when 'd' then exists (select from pg_catalog.pg_index i where i.indrelid = c.oid and i.indisprimary) else true end,
    'isPublished', (n.nspname, c.relname) in (select schema, name from published) or exists (
      select from pg_catalog.pg_partition_ancestors(c.oid) as a (oid) join pg_catalog.pg_class root on root.oid = a.oid
        join pg_catalog.pg_namespace rn on rn.oid = root.relnamespace join published on published.schema = rn.nspname and published.name = root.relname
    ),
    'isFiltered', exists (
      select from pg_catalog.pg_publication_rel member join pg_catalog.pg_publication publication on publication.oid = member.prpubid
      where publication.pubname = $2 and (member.prrelid = c.oid or member.prrelid in (select a.oid from pg_catalog.pg_partition_ancestors(c.oid) as a (oid)))
        and pg_catalog.to_jsonb(member.*) operator(pg_catalog.->>) 'prqual' is not null
    ),
    'roots', array(select a.oid::pg_catalog.oid::pg_catalog.int8 from pg_catalog.pg_partition_ancestors(c.oid) as a (oid)),
    'isReadOnce', ${HAS_ONLY_PARSED_READS} and coalesce((select times from own_reads where own_reads.oid = c.oid), 0) = 1
      and c.oid not in (select reads_of_others.oid from reads_of_others),
    'isReadOnceByOthers', ${HAS_ONLY_PARSED_READS} and c.oid not in (select own_reads.oid from own_reads)
      and (select pg_catalog.count(*) from reads_of_others where reads_of_others.oid = c.oid) = 1,
    'isSecured', c.relrowsecurity and not exists (
      select from pg_catalog.pg_roles r where r.rolname = $3 and (r.rolsuper or r.rolbypassrls)
    ) and (c.relforcerowsecurity or not pg_catalog.pg_has_role($3, c.relowner, 'usage')),
    'columns', (
      select coalesce(pg_catalog.json_object_agg(a.attnum, a.attname), '{}') from pg_catalog.pg_attribute a
      where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    )
  )
  from used join pg_catalog.pg_class c on used.class = ${CLASS("pg_class")} and c.oid = used.object
    join pg_catalog.pg_namespace n on n.oid = c.relnamespace
  where c.relkind in ('r', 'p', 'v', 'm', 'f')
  union all
  select pg_catalog.json_build_object('kind', 'tree', 'of', 'policy', 'relation', p.polrelid::pg_catalog.int8, 'isPermissive', p.polpermissive,
    'isApplied', ${IS_APPLIED}, 'tree', p.polqual::pg_catalog.text)
  from used join pg_catalog.pg_policy p on used.class = ${CLASS("pg_policy")} and p.oid = used.object
    join pg_catalog.pg_class c on c.oid = p.polrelid
  where p.polqual is not null
  union all
  select pg_catalog.json_build_object('kind', 'tree', 'of', 'function', 'oid', p.oid::pg_catalog.int8, 'tree', p.prosqlbody::pg_catalog.text,
    'changesSettings', exists (select from pg_catalog.unnest(p.proconfig) as setting where setting not like 'search\\_path=%'))
  from used join pg_catalog.pg_proc p on used.class = ${CLASS("pg_proc")} and p.oid = used.object
  where p.oid <> $1 and p.prosqlbody is not null
  union all
  select pg_catalog.json_build_object('kind', 'tree', 'of', 'view', 'tree', r.ev_action::pg_catalog.text)
  from used join pg_catalog.pg_rewrite r on used.class = ${CLASS("pg_rewrite")} and r.oid = used.object
  union all
  select pg_catalog.json_build_object('kind', 'unstreamed read', 'of', case when c.relkind = 'S' then 'a sequence' else 'a system catalog' end)
  from (select oid from reads_of_others union select oid from own_reads) as read join pg_catalog.pg_class c on c.oid = read.oid
  where c.relkind = 'S' or c.oid < ${FIRST_USER_OID}`;

/** A function without a search path of its own has that of the function that calls it, which also may set one while it runs. */
const SEARCH_PATHS = `
  select pg_catalog.concat_ws(' ', $1::pg_catalog.text, pg_catalog.string_agg(distinct paths, ' ')) as paths
  from pg_catalog.pg_proc p cross join lateral (values
    (p.proconfig::pg_catalog.text), (case when pg_catalog.strpos(p.prosrc, 'search_path') > 0 then p.prosrc end)
  ) as found (paths)
  where p.oid >= ${FIRST_USER_OID} and paths is not null`;
const PUBLISHES_ALL = `
  select pubinsert and pubupdate and pubdelete and pubtruncate as all_events from pg_catalog.pg_publication where pubname = $1`;
const VOLATILE_BUILT_INS = `
  select pg_catalog.array_agg(distinct proname::pg_catalog.text) as names from pg_catalog.pg_proc
  where provolatile = 'v' and oid < ${FIRST_USER_OID} and prokind in ('f', 'w') and prorettype <> 'pg_catalog.trigger'::pg_catalog.regtype`;

/** What stands between the name of a function and its arguments, also in a text that Postgres has not parsed. */
const CALLED = String.raw`"?\s*\(`;
/** Values that change with time alone. */
const TIME = new RegExp(
  [
    `\\b(?:now|transaction_timestamp|statement_timestamp|age)${CALLED}`,
    "\\b(?:CURRENT_DATE|CURRENT_TIME|CURRENT_TIMESTAMP|LOCALTIME|LOCALTIMESTAMP)\\b",
    "'(?:now|today|tomorrow|yesterday)'",
  ].join("|"),
  "i",
);
const DYNAMIC_SQL = /\bexecute\b/i;
/** Other settings than those that all requests of a caller have in common; none is called `graphql.refused`. */
const OTHER_SETTING =
  /current_setting\b(?!\(\s*'(?:request\.jwt\.claims|response\.\w+|graphql\.refused|app\.settings\.\w+)')/i;

type ReadObject =
  | (Extract<PolicyDependency, { kind: "condition" }> & {
      /** Whether it is that of a policy for other roles. */
      readonly isOfOthers?: boolean;
    })
  | (Extract<PolicyDependency, { kind: "function" }> & UsedFunction)
  | UsedRelation
  | UnstreamedRead
  | (UsedTree & { readonly kind: "tree" });

/** A relation whose changes are not in the stream of row changes. */
type UnstreamedRead = { readonly kind: "unstreamed read"; readonly of: string };

type UsedFunction = {
  readonly oid: number;
  readonly language: string;
  readonly volatility: "i" | "s" | "v";
  readonly kindOf: string;
  readonly isStatement: boolean;
  readonly source: string | null;
  readonly isVisible: boolean;
};

type UsedRelation = {
  readonly kind: "relation";
  readonly oid: number;
  readonly name: string;
  readonly relkind: "r" | "p" | "v" | "m" | "f";
  readonly isVisible: boolean;
  readonly hasKey: boolean;
  readonly isPublished: boolean;
  readonly isFiltered: boolean;
  readonly roots: readonly number[];
  readonly isReadOnce: boolean;
  readonly isReadOnceByOthers: boolean;
  readonly isSecured: boolean;
  readonly columns: Readonly<Record<string, string>>;
};

/** Reads what the statement uses, in a transaction that is rolled back. */
export function readQueryDependencies(
  asOwner: AsOwner,
  statement: StatementToRead,
  publication: string,
): Promise<QueryDependencies> {
  return asOwner(async (client) => {
    // One snapshot: the fingerprint is that of the definitions that were read.
    await client.query("begin isolation level repeatable read");
    try {
      return await readInTransaction(client, statement, publication);
    } finally {
      await client.query("rollback");
    }
  });
}

async function readInTransaction(
  client: pg.ClientBase,
  { text, role, searchPath }: StatementToRead,
  publication: string,
): Promise<QueryDependencies> {
  await client.query("select pg_catalog.set_config('search_path', $1, true)", [searchPath]);
  const types = await readParameterTypes(client, text);
  if (types.length > MAX_PARAMETERS) return notLive(`it has more than ${MAX_PARAMETERS} values`);
  await client.query(`create procedure ${PROCEDURE}(${types.join(", ")}) language sql begin atomic ${text}; end`);
  const { rows: made } = await client.query<{ oid: number }>(
    "select oid from pg_catalog.pg_proc where proname = 'live_query' and pronamespace = pg_catalog.pg_my_temp_schema()",
  );
  // Postgres then prints qualified names.
  await client.query("select pg_catalog.set_config('search_path', '', true)");
  const { rows: known } = await client.query<{ paths: string }>(SEARCH_PATHS, [searchPath]);
  const { rows } = await client.query<{ dependency: ReadObject }>(DEPENDENCIES, [
    made[0]!.oid,
    publication,
    role,
    known[0]!.paths,
  ]);
  const { rows: volatile } = await client.query<{ names: string[] }>(VOLATILE_BUILT_INS);
  const { rows: published } = await client.query<{ all_events: boolean }>(PUBLISHES_ALL, [publication]);
  const objects = rows.map(({ dependency }) => dependency);
  const summary = summarize(objects, volatile[0]!.names, published[0]?.all_events === true);
  return { ...summary, fingerprint: await fetchFingerprint(client, summary.deciding) };
}

async function readParameterTypes(client: pg.ClientBase, text: string): Promise<string[]> {
  await client.query(`prepare live_query as ${text}`);
  try {
    const { rows } = await client.query<{ types: string[] }>(
      `select array(
         select pg_catalog.format_type(type, null)
         from pg_catalog.unnest(parameter_types::pg_catalog.oid[]) with ordinality as parameter (type, number) order by number
       ) as types
       from pg_catalog.pg_prepared_statements where name = 'live_query'`,
    );
    return rows[0]!.types;
  } finally {
    await client.query("deallocate live_query");
  }
}

function notLive(reason: string): QueryDependencies {
  const deciding = { relations: [], functions: [] };
  return {
    relations: [],
    claims: "all",
    readsRequest: true,
    obstacles: [reason],
    deciding,
    fingerprint: "",
    rowFilters: [],
  };
}

function summarize(
  objects: readonly ReadObject[],
  volatile: readonly string[],
  publishesAll: boolean,
): Omit<QueryDependencies, "fingerprint"> {
  const relations = objects.filter((object) => object.kind === "relation");
  const functions = objects.filter((object) => object.kind === "function");
  const tables = relations.filter(({ relkind }) => relkind !== "v");
  const texts = textsOf(objects);
  // The claims are those of all policies: a role may be granted to the caller's at any time.
  const appliedTexts = textsOf(objects.filter((object) => object.kind !== "condition" || !object.isOfOthers));
  const others = objects.filter((object) => object.kind === "condition" || object.kind === "function");
  const trees = objects.filter((object) => object.kind === "tree");
  const unstreamed = objects.filter((object) => object.kind === "unstreamed read");
  return {
    relations: tables.flatMap((table) => [
      { oid: table.oid, isReadOnce: table.isReadOnce, policyColumns: policyColumnsOf(table, trees) },
      ...table.roots
        .filter((root) => root !== table.oid)
        .map((root) => ({ oid: root, isReadOnce: false, policyColumns: null })),
    ]),
    claims: findClaims([], others.map(toPolicyDependency)),
    readsRequest: texts.some((text) => OTHER_SETTING.test(text)),
    obstacles: [
      ...(publishesAll ? [] : ["the publication of row changes does not have all kinds of changes"]),
      ...tables.flatMap(obstaclesOfRelation),
      ...new Set(unstreamed.map(({ of }) => `it reads ${of}`)),
      ...functions.filter(({ isStatement }) => !isStatement).flatMap(obstaclesOfFunction),
      ...obstaclesOfTexts(appliedTexts, volatile),
    ],
    deciding: {
      relations: relations.map(({ oid }) => oid),
      functions: functions.filter(({ isStatement }) => !isStatement).map(({ oid }) => oid),
    },
    rowFilters: findRowFilters({
      trees,
      relations: tables,
      functionNames: new Map(functions.map(({ oid, name }) => [oid, name])),
    }),
  };
}

const COLUMN_NUMBER = /:varattno (-?\d+)/g;

/** The columns of other tables that policies read are counted too, by their numbers. Number 0 is a whole row, and others are of the system. */
function policyColumnsOf({ oid, columns }: UsedRelation, trees: readonly UsedTree[]): string[] | null {
  const own = trees.filter((each) => each.of === "policy" && each.relation === oid);
  const numbers = own.flatMap(({ tree }) => [...tree.matchAll(COLUMN_NUMBER)].map(([, number]) => number!));
  if (numbers.some((number) => Number(number) <= 0)) return null;
  return [...new Set(numbers)].flatMap((number) => columns[number] ?? []);
}

function textsOf(objects: readonly ReadObject[]): string[] {
  return objects.flatMap((object) => {
    if (object.kind === "condition") return object.text;
    return object.kind === "function" ? (object.body ?? object.source ?? []) : [];
  });
}

/** The statement itself calls nothing that its parsed body does not show. */
function toPolicyDependency(object: Extract<ReadObject, { kind: "condition" | "function" }>): PolicyDependency {
  return object.kind === "function" && object.isStatement && object.body !== null
    ? { kind: "condition", text: object.body }
    : object;
}

function obstaclesOfRelation(relation: UsedRelation): string[] {
  const { relkind, hasKey, isPublished, isFiltered } = relation;
  const name = nameOf(relation, "table");
  if (relkind === "f") return [`${name} is a foreign table`];
  if (relkind === "m") return [`${name} is a materialized view`];
  if (relkind === "p") return [];
  if (!isPublished) return [`${name} is not in the publication of row changes`];
  if (isFiltered) return [`the publication has only some rows of ${name}`];
  return hasKey ? [] : [`${name} has neither a primary key nor another replica identity`];
}

function obstaclesOfFunction(used: Extract<ReadObject, { kind: "function" }>): string[] {
  const { language, volatility, body, source, isImmutableC, kindOf } = used;
  const name = nameOf(used, "function");
  if (kindOf === "a") return [];
  if (volatility === "v") return [`${name} is volatile: declare it stable if it only reads`];
  if (body !== null || isImmutableC || language === "internal" || volatility === "i") return [];
  if (source === null) return [`what ${name} reads is unknown, because of its language`];
  return language === "plpgsql" && DYNAMIC_SQL.test(source) ? [`${name} runs SQL that it composes`] : [];
}

/** Names of what the caller may not see are not told. */
function nameOf({ name, isVisible }: { name: string; isVisible: boolean }, noun: string): string {
  return isVisible ? `the ${noun} ${name}` : `a ${noun} that the query or its policies use`;
}

function obstaclesOfTexts(texts: readonly string[], volatile: readonly string[]): string[] {
  const called = new RegExp(`(?<![\\w.$"]|"\\.)(?:pg_catalog\\.)?(?:${volatile.join("|")})${CALLED}`, "i");
  const obstacles: string[] = [];
  if (texts.some((text) => called.test(text))) obstacles.push("it calls a volatile function of Postgres");
  if (texts.some((text) => TIME.test(text))) obstacles.push("it depends on the time");
  return obstacles;
}

// A policy that is replaced has another oid or transaction; the flags of row-level security are those of its table.
const FINGERPRINT = `
  select pg_catalog.md5(pg_catalog.concat_ws('/',
    (select pg_catalog.string_agg(pg_catalog.concat_ws(' ', oid, xmin), ',' order by oid) from pg_catalog.pg_policy where polrelid = any($1)),
    (select pg_catalog.string_agg(pg_catalog.concat_ws(' ', oid, xmin), ',' order by oid) from pg_catalog.pg_proc where oid = any($2)),
    (select pg_catalog.string_agg(pg_catalog.concat_ws(' ', oid, relrowsecurity, relforcerowsecurity, relowner), ',' order by oid)
      from pg_catalog.pg_class where oid = any($1)),
    (select pg_catalog.string_agg(pg_catalog.concat_ws(' ', oid, xmin), ',' order by oid) from pg_catalog.pg_rewrite where ev_class = any($1))
  )) as fingerprint`;

/** Changes when a definition changes that decides who sees what: callers then may no longer share a result. */
export function readFingerprint(asOwner: AsOwner, deciding: DecidingObjects): Promise<string> {
  return asOwner((client) => fetchFingerprint(client, deciding));
}

async function fetchFingerprint(client: pg.ClientBase, { relations, functions }: DecidingObjects): Promise<string> {
  const { rows } = await client.query<{ fingerprint: string }>(FINGERPRINT, [relations, functions]);
  return rows[0]!.fingerprint;
}
