import type pg from "pg";
import { readDistributedTables } from "#catalog";
import type { AsOwner } from "#postgres/database";
import type { Statement } from "#postgres/statement";
import { hasClockCast, hasClockLiteral } from "./clock-values.ts";
import { type ParsedFunction, parseBody, type UnparsedFunction } from "./parse-bodies.ts";
import { findClaims, IS_IMMUTABLE_C, type PolicyDependency, unprintedTexts } from "./policy-dependencies.ts";
import type { DecidingObjects, QueryDependencies } from "./query-dependencies.ts";
import { findRowFilters, type UsedTree } from "./row-filters.ts";
import { DEPENDS_ON_TIME, explainSystemFunction, type SystemFunction } from "./system-functions.ts";

type StatementToRead = Pick<Statement, "text"> & { readonly role: string; readonly searchPath: string };

const PROCEDURE = "pg_temp.live_query";
/** A function has at most 100 parameters. */
const MAX_PARAMETERS = 100;

const CLASS = (name: string) => `'pg_catalog.${name}'::pg_catalog.regclass`;
const FIRST_USER_OID = 16_384;

/** The parsed query in a text of a node tree: relations in `from`, not those of permissions. */
const READ_IN_TREE = "':rtekind 0 :relid (\\d+)'";
const CALL_IN_TREE = "':(?:(?:op|hash|neg)?funcid|aggfnoid|winfnoid) (\\d+)'";

/** True if a value of the type of `parameter` is, or has, a date or time. */
const IS_TIME = `exists (
    with recursive part (type) as (
      select parameter.type
      union
      select inner_type.type from part join pg_catalog.pg_type whole on whole.oid = part.type cross join lateral (
        select whole.typelem union all select whole.typbasetype
        union all select r.rngsubtype from pg_catalog.pg_range r where whole.oid in (r.rngtypid, r.rngmultitypid)
        union all
        select a.atttypid from pg_catalog.pg_attribute a
        where a.attrelid = whole.typrelid and whole.typrelid <> 0 and a.attnum > 0 and not a.attisdropped
      ) as inner_type (type) where inner_type.type <> 0
    )
    select from part join pg_catalog.pg_type t on t.oid = part.type where t.typcategory = 'D'
  )`;

/** True if no other table has rows of the table `c`. */
const IS_ALONE = `c.relkind = 'r' and not c.relhassubclass
      and not exists (select from pg_catalog.pg_inherits i where i.inhrelid = c.oid)`;

/** True if the policy `p` of the table `c` is for the role, or for a role that functions and views read as. */
const IS_APPLIED = `(0 operator(pg_catalog.=) any(p.polroles) or exists (
      select from pg_catalog.unnest(p.polroles) as applies (role)
      where pg_catalog.pg_has_role($3, applies.role, 'usage') or exists (
        select from deputies where pg_catalog.pg_has_role(deputies.role, applies.role, 'usage')
          and (c.relforcerowsecurity or not pg_catalog.pg_has_role(deputies.role, c.relowner, 'usage'))
      )
    ))`;

/** The function's own search path. Names that a function without one calls are found by the path of the function that calls it. */
const OWN_PATH = `(select pg_catalog.substr(setting, 13) from pg_catalog.pg_proc p cross join lateral pg_catalog.unnest(p.proconfig) as setting
        where used.class = ${CLASS("pg_proc")} and p.oid = used.object and setting like 'search\\_path=%')`;

// The statement and the bodies of functions are routines whose bodies are parsed, so pg_depend has the objects that they read. Postgres's
// own objects are pinned, and not in it.
const USED = `
  with recursive json_cast (function, type) as (
    -- Values become JSON by a cast, where there is one, also as elements of arrays, columns of rows and values of domains.
    select made.castfunc, made.castsource from pg_catalog.pg_cast made
    where made.castfunc >= ${FIRST_USER_OID} and made.casttarget in ('pg_catalog.json'::pg_catalog.regtype, 'pg_catalog.jsonb'::pg_catalog.regtype)
    union
    select json_cast.function, whole.oid from json_cast cross join lateral (
      select t.oid from pg_catalog.pg_type t where t.typelem = json_cast.type or t.typbasetype = json_cast.type
      union all
      select c.reltype from pg_catalog.pg_attribute a join pg_catalog.pg_class c on c.oid = a.attrelid
      where a.atttypid = json_cast.type and a.attnum > 0 and not a.attisdropped and c.reltype <> 0
    ) as whole (oid)
  ), used (class, object, path) as (
    select ${CLASS("pg_proc")}::pg_catalog.oid, routine.oid, routine.path collate pg_catalog."C"
    from rows from (pg_catalog.unnest($1::pg_catalog.oid[]), pg_catalog.unnest($2::pg_catalog.text[])) as routine (oid, path)
    union
    select next.class, next.object, coalesce(${OWN_PATH}, used.path) collate pg_catalog."C" from used cross join lateral (
      select d.refclassid, d.refobjid from pg_catalog.pg_depend d
      where d.classid = used.class and d.objid = used.object
        and used.class in (${["pg_proc", "pg_operator", "pg_type", "pg_constraint", "pg_policy", "pg_rewrite"].map(CLASS).join(", ")})
        and (d.refclassid in (${["pg_proc", "pg_operator", "pg_type"].map(CLASS).join(", ")})
          or d.refclassid = ${CLASS("pg_class")} and used.class <> ${CLASS("pg_type")})
      union all
      select ${CLASS("pg_constraint")}, c.oid from pg_catalog.pg_constraint c
      where used.class = ${CLASS("pg_type")} and c.contypid = used.object
      union all
      -- A value of a row may be read into its columns.
      select ${CLASS("pg_type")}, a.atttypid
      from pg_catalog.pg_type t join pg_catalog.pg_attribute a on a.attrelid = t.typrelid and a.attnum > 0 and not a.attisdropped
      where used.class = ${CLASS("pg_type")} and t.oid = used.object and t.typrelid <> 0
      union all
      select ${CLASS("pg_proc")}, json_cast.function from json_cast
      where case used.class when ${CLASS("pg_type")} then json_cast.type = used.object
        when ${CLASS("pg_class")} then json_cast.type in (select a.atttypid from pg_catalog.pg_attribute a where a.attrelid = used.object) end
      union all
      -- What sorts by an operator compares by the functions of its family.
      select ${CLASS("pg_proc")}, support.amproc
      from pg_catalog.pg_amop member join pg_catalog.pg_amproc support on support.amprocfamily = member.amopfamily
      where used.class = ${CLASS("pg_operator")} and member.amopopr = used.object and support.amproc >= ${FIRST_USER_OID}
      union all
      select ${CLASS("pg_rewrite")}, r.oid from pg_catalog.pg_rewrite r
      where used.class = ${CLASS("pg_class")} and r.ev_class = used.object
      union all
      select ${CLASS("pg_policy")}, p.oid from pg_catalog.pg_policy p join pg_catalog.pg_class c on c.oid = p.polrelid
      where used.class = ${CLASS("pg_class")} and p.polrelid = used.object and c.relrowsecurity and p.polcmd in ('*', 'r')
      union all
      select ${CLASS("pg_class")}, i.inhrelid from pg_catalog.pg_inherits i
      where used.class = ${CLASS("pg_class")} and i.inhparent = used.object
    ) as next (class, object)
  )`;

/** Functions whose bodies are texts. Names are printed with their schemas. */
const UNPARSED = `${USED}
  select distinct p.oid, coalesce(${OWN_PATH}, used.path) as path, p.proname as name, l.lanname as language, p.prosrc as source,
    pg_catalog.pg_get_function_identity_arguments(p.oid) as parameters, pg_catalog.pg_get_function_result(p.oid) as result,
    array(
      select pg_catalog.format_type(type, null)
      from pg_catalog.unnest(coalesce(p.proallargtypes, p.proargtypes::pg_catalog.oid[])) with ordinality as parameter (type, number) order by number
    ) as types,
    p.proargnames as names,
    case when r.typtype <> 'p' then pg_catalog.format_type(p.prorettype, null) end as "resultType"
  from used join pg_catalog.pg_proc p on used.class = ${CLASS("pg_proc")} and p.oid = used.object
    join pg_catalog.pg_language l on l.oid = p.prolang join pg_catalog.pg_type r on r.oid = p.prorettype
  where p.oid >= ${FIRST_USER_OID} and p.prosqlbody is null and l.lanname in ('sql', 'plpgsql') and p.prokind in ('f', 'w')
    and p.provolatile <> 'v'`;

const DEPENDENCIES = `${USED}, found (class, object) as (
    select distinct used.class, used.object from used
  ), deputies (role) as (
    -- As whom functions and views read, where policies apply to them.
    select r.oid from pg_catalog.pg_roles r where not r.rolsuper and not r.rolbypassrls and r.oid in (
      select p.proowner from found as used join pg_catalog.pg_proc p on used.class = ${CLASS("pg_proc")} and p.oid = used.object where p.prosecdef
      union
      select c.relowner from found as used join pg_catalog.pg_class c on used.class = ${CLASS("pg_class")} and c.oid = used.object
    )
  ), trees (tree, is_statement, is_body, is_of_others) as (
    select p.prosqlbody::pg_catalog.text, p.oid = $4, p.oid = any($1), false
    from found as used join pg_catalog.pg_proc p on used.class = ${CLASS("pg_proc")} and p.oid = used.object
    where p.prosqlbody is not null
    union all
    select p.proargdefaults::pg_catalog.text, false, false, false
    from found as used join pg_catalog.pg_proc p on used.class = ${CLASS("pg_proc")} and p.oid = used.object
    where p.proargdefaults is not null
    union all
    select p.polqual::pg_catalog.text, false, false, not ${IS_APPLIED}
    from found as used join pg_catalog.pg_policy p on used.class = ${CLASS("pg_policy")} and p.oid = used.object
      join pg_catalog.pg_class c on c.oid = p.polrelid
    union all
    select r.ev_action::pg_catalog.text, false, false, false
    from found as used join pg_catalog.pg_rewrite r on used.class = ${CLASS("pg_rewrite")} and r.oid = used.object
    union all
    select c.conbin::pg_catalog.text, false, false, false
    from found as used join pg_catalog.pg_constraint c on used.class = ${CLASS("pg_constraint")} and c.oid = used.object
  ), reads (oid, is_statement, is_body) as (
    select found[1]::pg_catalog.oid, is_statement, is_body
    from trees cross join lateral pg_catalog.regexp_matches(tree, ${READ_IN_TREE}, 'g') as found
  ), published (schema, name) as (
    select schemaname, tablename from pg_catalog.pg_publication_tables where pubname = $5
  )
  select pg_catalog.json_build_object('kind', 'condition', 'text', pg_catalog.pg_get_expr(p.polqual, p.polrelid),
    'isOfOthers', not ${IS_APPLIED}
  ) as dependency
  from found as used join pg_catalog.pg_policy p on used.class = ${CLASS("pg_policy")} and p.oid = used.object
    join pg_catalog.pg_class c on c.oid = p.polrelid
  where p.polqual is not null
  union all
  select pg_catalog.json_build_object('kind', 'condition', 'text', pg_catalog.pg_get_expr(c.conbin, 0))
  from found as used join pg_catalog.pg_constraint c on used.class = ${CLASS("pg_constraint")} and c.oid = used.object where c.conbin is not null
  union all
  ${unprintedTexts("found as used")}
  union all
  select pg_catalog.json_build_object('kind', 'condition', 'text', pg_catalog.pg_get_viewdef(c.oid))
  from found as used join pg_catalog.pg_class c on used.class = ${CLASS("pg_class")} and c.oid = used.object where c.relkind = 'v'
  union all
  select pg_catalog.json_build_object(
    'kind', 'function', 'oid', p.oid::pg_catalog.int8, 'name', pg_catalog.format('%I.%I', n.nspname, p.proname), 'body', pg_catalog.pg_get_function_sqlbody(p.oid),
    'isImmutableC', ${IS_IMMUTABLE_C},
    'isPlainJson', p.pronargs = 0 and p.prorettype in ('pg_catalog.json'::pg_catalog.regtype, 'pg_catalog.jsonb'::pg_catalog.regtype) and p.proconfig is null,
    'language', l.lanname, 'volatility', p.provolatile, 'kindOf', p.prokind, 'isStatement', p.oid = $4,
    'source', case when l.lanname in ('sql', 'plpgsql') then p.prosrc end,
    'isVisible', pg_catalog.has_function_privilege($3, p.oid, 'execute')
  )
  from found as used join pg_catalog.pg_proc p on used.class = ${CLASS("pg_proc")} and p.oid = used.object
    join pg_catalog.pg_namespace n on n.oid = p.pronamespace join pg_catalog.pg_language l on l.oid = p.prolang
  where p.oid = $4 or p.oid <> all($1)
  union all
  select pg_catalog.json_build_object('kind', 'condition', 'text', pg_catalog.pg_get_function_sqlbody(body.oid))
  from pg_catalog.unnest($1) as body (oid) where body.oid <> $4
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
      where publication.pubname = $5 and (member.prrelid = c.oid or member.prrelid in (select a.oid from pg_catalog.pg_partition_ancestors(c.oid) as a (oid)))
        and pg_catalog.to_jsonb(member.*) operator(pg_catalog.->>) 'prqual' is not null
    ),
    'roots', array(select a.oid::pg_catalog.oid::pg_catalog.int8 from pg_catalog.pg_partition_ancestors(c.oid) as a (oid)),
    'reads', case when ${IS_ALONE} then (
      select case when pg_catalog.bool_and(reads.is_statement) then pg_catalog.count(*) else 0 end from reads where reads.oid = c.oid
    ) else 0 end,
    'isReadOnceByOthers', ${IS_ALONE} and (
      select pg_catalog.count(*) = 1 and not pg_catalog.bool_or(reads.is_body) from reads where reads.oid = c.oid
    ),
    'isSecured', c.relrowsecurity and not exists (
      select from pg_catalog.pg_roles r where r.rolname = $3 and (r.rolsuper or r.rolbypassrls)
    ) and (c.relforcerowsecurity or not pg_catalog.pg_has_role($3, c.relowner, 'usage')),
    'columns', (
      select coalesce(pg_catalog.json_object_agg(a.attnum, a.attname), '{}') from pg_catalog.pg_attribute a
      where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    )
  )
  from found as used join pg_catalog.pg_class c on used.class = ${CLASS("pg_class")} and c.oid = used.object
    join pg_catalog.pg_namespace n on n.oid = c.relnamespace
  where c.relkind in ('r', 'p', 'v', 'm', 'f')
  union all
  select pg_catalog.json_build_object('kind', 'tree', 'of', 'policy', 'relation', p.polrelid::pg_catalog.int8, 'isPermissive', p.polpermissive,
    'isApplied', ${IS_APPLIED}, 'tree', p.polqual::pg_catalog.text)
  from found as used join pg_catalog.pg_policy p on used.class = ${CLASS("pg_policy")} and p.oid = used.object
    join pg_catalog.pg_class c on c.oid = p.polrelid
  where p.polqual is not null
  union all
  select pg_catalog.json_build_object('kind', 'tree', 'of', 'function', 'oid', p.oid::pg_catalog.int8, 'tree', p.prosqlbody::pg_catalog.text,
    'changesSettings', exists (select from pg_catalog.unnest(p.proconfig) as setting where setting not like 'search\\_path=%'))
  from found as used join pg_catalog.pg_proc p on used.class = ${CLASS("pg_proc")} and p.oid = used.object
  where p.oid <> all($1) and p.prosqlbody is not null
  union all
  select pg_catalog.json_build_object('kind', 'tree', 'of', 'view', 'tree', r.ev_action::pg_catalog.text)
  from found as used join pg_catalog.pg_rewrite r on used.class = ${CLASS("pg_rewrite")} and r.oid = used.object
  union all
  select pg_catalog.json_build_object('kind', 'unstreamed read', 'of', case when c.relkind = 'S' then 'a sequence' else 'a system catalog' end)
  from (select distinct reads.oid from reads) as read join pg_catalog.pg_class c on c.oid = read.oid
  where c.relkind = 'S' or c.oid < ${FIRST_USER_OID}
  union all
  select pg_catalog.json_build_object('kind', 'unstreamed read', 'of', 'a random sample of rows')
  from trees where pg_catalog.strpos(tree, ':tablesample {') > 0
  union all
  select pg_catalog.json_build_object('kind', 'system function', 'name', p.proname, 'volatility', p.provolatile)
  from (
    select distinct called[1]::pg_catalog.oid as oid
    from trees cross join lateral pg_catalog.regexp_matches(tree, ${CALL_IN_TREE}, 'g') as called where not is_of_others
  ) as called join pg_catalog.pg_proc p on p.oid = called.oid
  where p.oid < ${FIRST_USER_OID} and p.provolatile <> 'i'`;

/** True if "$user" in a search path is a schema for some role. */
const ARE_ROLES_SCHEMAS = `select exists (
  select from pg_catalog.pg_namespace n join pg_catalog.pg_roles r on r.rolname = n.nspname) as are_schemas`;
const UNREAD: ParsedFunction = { oid: null, composesSql: false };
const PUBLISHES_ALL = `
  select pubinsert and pubupdate and pubdelete and pubtruncate as all_events from pg_catalog.pg_publication where pubname = $1`;
/** Values that change with time alone; calls of functions are in the trees. */
const TIME = /\b(?:CURRENT_DATE|CURRENT_TIME|CURRENT_TIMESTAMP|LOCALTIME|LOCALTIMESTAMP)\b/;
/** Settings that not all requests of a caller have in common; none is called `graphql.refused`. `AS current_setting` names a column. */
const OTHER_SETTING =
  /(?<!\bAS )current_setting\b(?!\(\s*'(?:request\.jwt\.(?:claims|claim\.\w+)|response\.\w+|graphql\.refused|app\.settings\.\w+)')/i;

type ReadObject =
  | (Extract<PolicyDependency, { kind: "condition" }> & {
      /** True if the condition belongs to a policy for other roles. */
      readonly isOfOthers?: boolean;
    })
  | (Extract<PolicyDependency, { kind: "function" }> & UsedFunction)
  | ParsedRelation
  | UnstreamedRead
  | (SystemFunction & { readonly kind: "system function" })
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

type ParsedRelation = {
  readonly kind: "relation";
  readonly oid: number;
  readonly name: string;
  readonly relkind: "r" | "p" | "v" | "m" | "f";
  readonly isVisible: boolean;
  readonly hasKey: boolean;
  readonly isPublished: boolean;
  readonly isFiltered: boolean;
  /** True if other nodes store its rows. */
  readonly isDistributed: boolean;
  readonly roots: readonly number[];
  readonly reads: number;
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
    // The transaction has one snapshot: the fingerprint is that of the definitions that were read.
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
  // The texts are compared as Postgres prints them without unnecessary quotes.
  await client.query(
    "select pg_catalog.set_config('search_path', $1, true), pg_catalog.set_config('quote_all_identifiers', 'off', true)",
    [searchPath],
  );
  const parameters = await readParameters(client, text);
  const types = parameters.map(({ type }) => type);
  if (types.length > MAX_PARAMETERS) return notLive(text, `it has more than ${MAX_PARAMETERS} values`);
  await client.query(`create procedure ${PROCEDURE}(${types.join(", ")}) language sql begin atomic ${text}; end`);
  const { rows: made } = await client.query<{ oid: number }>(
    "select oid from pg_catalog.pg_proc where proname = 'live_query' and pronamespace = pg_catalog.pg_my_temp_schema()",
  );
  const statement = made[0]!.oid;
  const { routines, ...bodies } = await parseBodies(client, { oid: statement, path: searchPath });
  const { rows } = await client.query<{ dependency: ReadObject }>(DEPENDENCIES, [
    routines.map(({ oid }) => oid),
    routines.map(({ path }) => path),
    role,
    statement,
    publication,
  ]);
  const { rows: published } = await client.query<{ all_events: boolean }>(PUBLISHES_ALL, [publication]);
  const distributedTables = await readDistributedTables(async (query) => (await client.query(query)).rows);
  const distributed = new Set(distributedTables.map(({ oid }) => oid));
  const objects = rows.map(({ dependency }) =>
    dependency.kind === "relation" ? { ...dependency, isDistributed: distributed.has(dependency.oid) } : dependency,
  );
  const summary = summarize(objects, bodies, published[0]?.all_events === true);
  return {
    ...summary,
    timeParameters: parameters.flatMap(({ isTime }, index) => (isTime ? index : [])),
    texts: [text, ...summary.texts],
    fingerprint: await fetchFingerprint(client, summary.deciding),
  };
}

type SearchedRoutine = { readonly oid: number; readonly path: string };
/** The functions whose reads are not known. `composesSql`: they are not known because the function composes SQL. */
type UnreadFunctions = ReadonlyMap<number, { readonly composesSql: boolean }>;

type ParsedBodies = {
  readonly unread: UnreadFunctions;
  /** The functions whose bodies are read as those of other routines. */
  readonly copied: ReadonlySet<number>;
};

/** Makes Postgres parse the bodies of all functions that the statement uses; the bodies show further functions. */
async function parseBodies(
  client: pg.ClientBase,
  statement: SearchedRoutine,
): Promise<ParsedBodies & { readonly routines: readonly SearchedRoutine[] }> {
  const routines = [statement];
  const unread = new Map<number, { readonly composesSql: boolean }>();
  const copied = new Set<number>();
  const known = new Set<string>();
  const { rows: roles } = await client.query<{ are_schemas: boolean }>(ARE_ROLES_SCHEMAS);
  for (let count = 0; count < routines.length; ) {
    count = routines.length;
    // Postgres then prints qualified names.
    await client.query("select pg_catalog.set_config('search_path', '', true)");
    const [oids, paths] = [routines.map(({ oid }) => oid), routines.map(({ path }) => path)];
    const { rows } = await client.query<UnparsedFunction>(UNPARSED, [oids, paths]);
    for (const unparsed of rows) {
      const { oid, path } = unparsed;
      const key = `${oid} ${path}`;
      if (known.has(key)) continue;
      known.add(key);
      const isOfRole = path.includes("$user") && roles[0]!.are_schemas;
      const parsed = isOfRole ? UNREAD : await parseBody(client, unparsed, `live_body_${known.size}`);
      if (parsed.oid === null) unread.set(oid, parsed);
      else routines.push({ oid: parsed.oid, path });
      copied.add(oid);
    }
  }
  await client.query("select pg_catalog.set_config('search_path', '', true)");
  return { routines, unread, copied: copied.difference(unread) };
}

type ParsedParameter = { readonly type: string; readonly isTime: boolean };

async function readParameters(client: pg.ClientBase, text: string): Promise<ParsedParameter[]> {
  await client.query(`prepare live_query as ${text}`);
  try {
    const { rows } = await client.query<ParsedParameter>(
      `select pg_catalog.format_type(parameter.type, null) as type, ${IS_TIME} as "isTime"
       from pg_catalog.pg_prepared_statements, pg_catalog.unnest(parameter_types::pg_catalog.oid[]) with ordinality as parameter (type, number)
       where name = 'live_query' order by number`,
    );
    return rows;
  } finally {
    await client.query("deallocate live_query");
  }
}

function notLive(text: string, reason: string): QueryDependencies {
  const deciding = { relations: [], functions: [] };
  return {
    relations: [],
    claims: "all",
    readsRequest: true,
    obstacles: [reason],
    deciding,
    texts: [text],
    fingerprint: "",
    rowFilters: [],
    timeParameters: [],
  };
}

function summarize(
  objects: readonly ReadObject[],
  { unread, copied }: ParsedBodies,
  publishesAll: boolean,
): Omit<QueryDependencies, "fingerprint" | "timeParameters"> {
  const relations = objects.filter((object) => object.kind === "relation");
  const functions = objects.filter((object) => object.kind === "function");
  const tables = relations.filter(({ relkind }) => relkind !== "v");
  const texts = textsOf(objects);
  // The claims are those of all policies: a role may be granted to the caller's at any time.
  const appliedTexts = textsOf(objects.filter((object) => object.kind !== "condition" || !object.isOfOthers));
  const others = objects.filter((object) => object.kind === "condition" || object.kind === "function");
  const known = others.filter((object) => object.kind === "condition" || !copied.has(object.oid));
  const trees = objects.filter((object) => object.kind === "tree");
  const unstreamed = objects.filter((object) => object.kind === "unstreamed read");
  const called = objects.filter((object) => object.kind === "system function");
  const isLimitedByTime =
    appliedTexts.some((text) => TIME.test(text) || hasClockCast(text)) ||
    functions.some(({ source }) => hasClockLiteral(source ?? ""));
  return {
    relations: tables.flatMap((table) => [
      { oid: table.oid, reads: table.reads, policyColumns: policyColumnsOf(table, trees) },
      ...table.roots.filter((root) => root !== table.oid).map((root) => ({ oid: root, reads: 0, policyColumns: null })),
    ]),
    claims: findClaims([], known.map(toPolicyDependency)),
    readsRequest: texts.some((text) => OTHER_SETTING.test(text)),
    obstacles: [
      ...(publishesAll ? [] : ["the publication of row changes does not have all kinds of changes"]),
      ...tables.flatMap(obstaclesOfRelation),
      ...functions.filter(({ isStatement }) => !isStatement).flatMap((each) => obstaclesOfFunction(each, unread)),
      ...new Set([
        ...unstreamed.map(({ of }) => `it reads ${of}`),
        ...called.flatMap((each) => explainSystemFunction(each) ?? []),
        ...(isLimitedByTime ? [DEPENDS_ON_TIME] : []),
      ]),
    ],
    deciding: {
      relations: relations.map(({ oid }) => oid),
      functions: functions.filter(({ isStatement }) => !isStatement).map(({ oid }) => oid),
    },
    texts: functions.flatMap(({ source }) => source ?? []),
    rowFilters: findRowFilters({
      trees,
      relations: tables,
      functionNames: new Map(functions.map(({ oid, name }) => [oid, name])),
    }),
  };
}

const COLUMN_NUMBER = /:varattno (-?\d+)/g;

/** The columns of other tables that policies read are counted too, by their numbers. Number 0 is a whole row, and others are of the system. */
function policyColumnsOf({ oid, columns }: ParsedRelation, trees: readonly UsedTree[]): string[] | null {
  const own = trees.filter((each) => each.of === "policy" && each.relation === oid);
  const numbers = own.flatMap(({ tree }) => [...tree.matchAll(COLUMN_NUMBER)].map(([, number]) => number!));
  if (numbers.some((number) => Number(number) <= 0)) return null;
  return [...new Set(numbers)].flatMap((number) => columns[number] ?? []);
}

function textsOf(objects: readonly ReadObject[]): string[] {
  return objects.flatMap((object) => {
    if (object.kind === "condition") return object.text;
    return object.kind === "function" ? (object.body ?? []) : [];
  });
}

/** The statement itself calls nothing that its parsed body does not show. */
function toPolicyDependency(object: Extract<ReadObject, { kind: "condition" | "function" }>): PolicyDependency {
  return object.kind === "function" && object.isStatement && object.body !== null
    ? { kind: "condition", text: object.body }
    : object;
}

function obstaclesOfRelation(relation: ParsedRelation): string[] {
  const { relkind, hasKey, isPublished, isFiltered, isDistributed } = relation;
  const name = nameOf(relation, "table");
  if (relkind === "f") return [`${name} is a foreign table`];
  if (relkind === "m") return [`${name} is a materialized view`];
  if (isDistributed) return [`${name} is distributed by Citus, and changes of its rows do not reach this server`];
  if (relkind === "p") return [];
  if (!isPublished) return [`${name} is not in the publication of row changes`];
  if (isFiltered) return [`the publication has only some rows of ${name}`];
  return hasKey ? [] : [`${name} has neither a primary key nor another replica identity`];
}

function obstaclesOfFunction(used: Extract<ReadObject, { kind: "function" }>, unread: UnreadFunctions): string[] {
  const { oid, language, volatility, body, source, isImmutableC, kindOf } = used;
  const name = nameOf(used, "function");
  if (kindOf === "a") return [];
  if (volatility === "v") return [`${name} is volatile: declare it stable if it only reads`];
  const unknown = unread.get(oid);
  if (unknown?.composesSql) return [`${name} runs SQL that it composes`];
  if (unknown) return [`what ${name} reads is unknown: write it in SQL with BEGIN ATOMIC`];
  if (body !== null || source !== null || isImmutableC || volatility === "i") return [];
  return [`what ${name} reads is unknown, because of its language ${language}`];
}

/** Returns no name of an object that the caller may not see. */
function nameOf({ name, isVisible }: { name: string; isVisible: boolean }, noun: string): string {
  return isVisible ? `the ${noun} ${name}` : `a ${noun} that the query or its policies use`;
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

/** The fingerprint changes when a definition changes that decides which rows callers see: callers then may no longer share a result. */
export function readFingerprint(asOwner: AsOwner, deciding: DecidingObjects): Promise<string> {
  return asOwner((client) => fetchFingerprint(client, deciding));
}

async function fetchFingerprint(client: pg.ClientBase, { relations, functions }: DecidingObjects): Promise<string> {
  const { rows } = await client.query<{ fingerprint: string }>(FINGERPRINT, [relations, functions]);
  return rows[0]!.fingerprint;
}
