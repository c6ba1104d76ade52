import { foreignOptions, IS_PERMANENT, isExtensionMember, objects, roleName } from "./fragments.ts";

const schemas = `
  ${objects("pg_namespace", "item.oid", {
    // Every new database has a schema public; a schema that replaces it is created again.
    statement: `concat(
      case when nspname = 'public' then 'drop schema if exists public; ' end,
      'create schema if not exists ', quote_ident(nspname)
    )`,
    from: "pg_namespace as item",
    where: "nspname !~ '^pg_'",
  })}
  union all
  select 'pg_namespace'::regclass, 0, 'schema public', 'drop schema if exists public'
  where to_regnamespace('public') is null`;

const extensions = `
  select 'pg_extension'::regclass::oid as catalog, item.oid, 'extension ' || quote_ident(extname) as object,
    format('create extension if not exists %I', extname) || coalesce((
      select format(' with schema %I', nspname) from pg_namespace
      where pg_namespace.oid = extnamespace and not exists (
        select from pg_depend
        where classid = 'pg_namespace'::regclass and objid = extnamespace and deptype = 'e' and refobjid = item.oid
      )
    ), '') as statement
  from pg_extension as item
  where extname <> 'plpgsql'`;

const collationClause = (collation: string, type: string) => `(
  select format(' collate %I.%I', nspname, collname)
  from pg_collation join pg_namespace on pg_namespace.oid = collnamespace
  where pg_collation.oid = ${collation}
    and ${collation} is distinct from (select base.typcollation from pg_type as base where base.oid = ${type})
)`;

const enums = objects("pg_type", "item.oid", {
  statement: `format('create type %s as enum (%s)', format_type(item.oid, null), (
    select string_agg(quote_literal(enumlabel), ', ' order by enumsortorder) from pg_enum where enumtypid = item.oid
  ))`,
  from: "pg_type as item",
  where: "typtype = 'e'",
});

const composites = objects("pg_type", "item.oid", {
  statement: `format(e'create type %s as (\\n%s\\n)', format_type(item.oid, null), (
    select string_agg(
      format('  %I %s%s', attname, format_type(atttypid, atttypmod), ${collationClause("attcollation", "atttypid")}),
      e',\\n' order by attnum
    )
    from pg_attribute where attrelid = class.oid and attnum > 0 and not attisdropped
  ))`,
  from: "pg_type as item join pg_class as class on class.oid = item.typrelid",
  where: `relkind = 'c' and ${IS_PERMANENT}`,
});

const domains = objects("pg_type", "item.oid", {
  statement: `concat(
    format('create domain %s as %s', format_type(item.oid, null), format_type(typbasetype, typtypmod)),
    ${collationClause("typcollation", "typbasetype")},
    ' default ' || coalesce(pg_get_expr(typdefaultbin, 0), quote_literal(typdefault)),
    case when typnotnull then ' not null' end
  )`,
  from: "pg_type as item",
  where: "typtype = 'd'",
});

const domainConstraints = objects("pg_constraint", "item.oid", {
  statement: `format(
    'alter domain %s add constraint %I %s', format_type(contypid, null), conname, pg_get_constraintdef(item.oid)
  )`,
  from: "pg_constraint as item",
  where: `contypid <> 0 and contype = 'c' and not ${isExtensionMember("pg_type", "contypid")}`,
});

/** Ranges with a canonical function are excluded, because it needs the type before it exists. */
const ranges = objects("pg_type", "item.oid", {
  statement: `concat(
    format(
      'create type %s as range (subtype = %s, multirange_type_name = %s, subtype_opclass = %s',
      format_type(item.oid, null), format_type(rngsubtype, null), format_type(rngmultitypid, null),
      (
        select format('%I.%I', nspname, opcname)
        from pg_opclass join pg_namespace on pg_namespace.oid = opcnamespace where pg_opclass.oid = rngsubopc
      )
    ),
    (
      select format(', collation = %I.%I', nspname, collname)
      from pg_collation join pg_namespace on pg_namespace.oid = collnamespace where pg_collation.oid = rngcollation
    ),
    case when rngsubdiff <> 0 then ', subtype_diff = ' || rngsubdiff::regproc end, ')'
  )`,
  from: "pg_type as item join pg_range on rngtypid = item.oid",
  where: "rngcanonical = 0",
});

const collations = objects("pg_collation", "item.oid", {
  // The columns differ between major versions.
  statement: `concat(
    format('create collation %I.%I (', nspname, collname),
    case collprovider when 'i' then 'provider = icu' when 'b' then 'provider = builtin' else 'provider = libc' end,
    ', locale = ' || quote_literal(coalesce(entry ->> 'colllocale', entry ->> 'colliculocale',
      case collprovider when 'i' then collcollate end)),
    case when collprovider = 'c' then format(', lc_collate = %L, lc_ctype = %L', collcollate, collctype) end,
    case when not collisdeterministic then ', deterministic = false' end,
    ', rules = ' || quote_literal(entry ->> 'collicurules'), ')'
  )`,
  from: `pg_collation as item
    join pg_namespace on pg_namespace.oid = collnamespace cross join lateral (select to_jsonb(item.*) as entry) as fields`,
  where: "true",
});

const functions = objects("pg_proc", "item.oid", {
  statement: "rtrim(pg_get_functiondef(item.oid), e'\\n')",
  from: "pg_proc as item",
  where: "prokind <> 'a'",
});

/** Returns an option of an aggregate whose value is a function; null if it has none. */
const aggregateFunction = (option: string, column: string) =>
  `case when ${column} <> 0 then ', ${option} = ' || ${column}::regproc end`;

const finalModify = (column: string) =>
  `case ${column} when 'r' then 'read_only' when 's' then 'shareable' else 'read_write' end`;

const aggregates = objects("pg_proc", "item.oid", {
  statement: `concat(
    format('create aggregate %I.%I(%s) (', nspname, proname, coalesce(nullif(pg_get_function_arguments(item.oid), ''), '*')),
    'sfunc = ', aggtransfn::regproc, ', stype = ', format_type(aggtranstype, null),
    case when aggtransspace > 0 then ', sspace = ' || aggtransspace end,
    ${aggregateFunction("finalfunc", "aggfinalfn")},
    case when aggfinalextra then ', finalfunc_extra' end,
    case when aggfinalfn <> 0 then ', finalfunc_modify = ' || ${finalModify("aggfinalmodify")} end,
    ${aggregateFunction("combinefunc", "aggcombinefn")},
    ${aggregateFunction("serialfunc", "aggserialfn")},
    ${aggregateFunction("deserialfunc", "aggdeserialfn")},
    ', initcond = ' || quote_literal(agginitval),
    ${aggregateFunction("msfunc", "aggmtransfn")},
    ${aggregateFunction("minvfunc", "aggminvtransfn")},
    case when aggmtransfn <> 0 then ', mstype = ' || format_type(aggmtranstype, null) end,
    case when aggmtransspace > 0 then ', msspace = ' || aggmtransspace end,
    ${aggregateFunction("mfinalfunc", "aggmfinalfn")},
    case when aggmfinalextra then ', mfinalfunc_extra' end,
    case when aggmfinalfn <> 0 then ', mfinalfunc_modify = ' || ${finalModify("aggmfinalmodify")} end,
    ', minitcond = ' || quote_literal(aggminitval),
    (
      select format(', sortop = operator(%I.%s)', opnspace.nspname, oprname)
      from pg_operator join pg_namespace as opnspace on opnspace.oid = oprnamespace where pg_operator.oid = aggsortop
    ),
    case when aggkind = 'h' then ', hypothetical' end,
    case proparallel when 's' then ', parallel = safe' when 'r' then ', parallel = restricted' end,
    ')'
  )`,
  from: `pg_proc as item
    join pg_aggregate on aggfnoid = item.oid join pg_namespace on pg_namespace.oid = pronamespace`,
  where: "true",
});

const relatedOperator = (option: string, column: string) => `(
  select format(', ${option} = operator(%I.%s)', other_schema.nspname, other.oprname)
  from pg_operator as other join pg_namespace as other_schema on other_schema.oid = other.oprnamespace
  where other.oid = item.${column}
)`;

/** Postgres 14 and later have no postfix operators. */
const operators = objects("pg_operator", "item.oid", {
  statement: `concat(
    format('create operator %I.%s (function = %s', nspname, oprname, oprcode::oid::regproc),
    case when oprleft <> 0 then ', leftarg = ' || format_type(oprleft, null) end,
    ', rightarg = ', format_type(oprright, null),
    ${relatedOperator("commutator", "oprcom")},
    ${relatedOperator("negator", "oprnegate")},
    case when oprrest <> 0 then ', restrict = ' || oprrest::oid::regproc end,
    case when oprjoin <> 0 then ', join = ' || oprjoin::oid::regproc end,
    case when oprcanhash then ', hashes' end,
    case when oprcanmerge then ', merges' end,
    ')'
  )`,
  from: "pg_operator as item join pg_namespace on pg_namespace.oid = oprnamespace",
  where: "oprcode <> 0",
});

const casts = objects("pg_cast", "item.oid", {
  statement: `concat(
    format('create cast (%s as %s) ', format_type(castsource, null), format_type(casttarget, null)),
    case castmethod when 'i' then 'with inout' when 'b' then 'without function'
      else 'with function ' || castfunc::regprocedure end,
    case castcontext when 'a' then ' as assignment' when 'i' then ' as implicit' end
  )`,
  from: "pg_cast as item",
  where: "true",
});

const dictionaries = objects("pg_ts_dict", "item.oid", {
  statement: `format('create text search dictionary %I.%I (template = %I.%I%s)', own_schema.nspname, dictname,
    template_schema.nspname, tmplname, ', ' || dictinitoption)`,
  from: `pg_ts_dict as item
    join pg_namespace as own_schema on own_schema.oid = dictnamespace
    join pg_ts_template as template on template.oid = dicttemplate
    join pg_namespace as template_schema on template_schema.oid = tmplnamespace`,
  where: "true",
});

const textSearchConfigurations = objects("pg_ts_config", "item.oid", {
  statement: `concat(
    format('create text search configuration %s (parser = %I.%I)', item.oid::regconfig, nspname, prsname),
    (
      select string_agg(
        format('; alter text search configuration %s add mapping for %I with %s', item.oid::regconfig, alias, dictionaries),
        '' order by alias
      )
      from (
        select alias, string_agg(mapdict::regdictionary::text, ', ' order by mapseqno) as dictionaries
        from pg_ts_config_map join ts_token_type(cfgparser) on tokid = maptokentype
        where mapcfg = item.oid group by alias
      ) as mapping
    )
  )`,
  from: `pg_ts_config as item
    join pg_ts_parser on pg_ts_parser.oid = cfgparser join pg_namespace on pg_namespace.oid = prsnamespace`,
  where: "true",
});

const foreignDataWrappers = objects("pg_foreign_data_wrapper", "item.oid", {
  statement: `concat(
    format('create foreign data wrapper %I', fdwname),
    case when fdwhandler <> 0 then ' handler ' || fdwhandler::regproc end,
    case when fdwvalidator <> 0 then ' validator ' || fdwvalidator::regproc end,
    ${foreignOptions("fdwoptions")}
  )`,
  from: "pg_foreign_data_wrapper as item",
  where: "true",
});

const foreignServers = objects("pg_foreign_server", "item.oid", {
  statement: `concat(
    format('create server %I', srvname), ' type ' || quote_literal(srvtype), ' version ' || quote_literal(srvversion),
    format(' foreign data wrapper %I', fdwname), ${foreignOptions("srvoptions")}
  )`,
  from: "pg_foreign_server as item join pg_foreign_data_wrapper on pg_foreign_data_wrapper.oid = srvfdw",
  where: "true",
});

/** The view hides options, which may contain passwords, from roles that may not read them; the table is readable by superusers only. */
const userMappings = `
  select 'pg_user_mapping'::regclass::oid as catalog, umid as oid, format('user mapping of %s for %s', srvname, usename) as object,
    format('create user mapping for %s server %I', ${roleName("umuser")}, srvname) || coalesce(${foreignOptions("umoptions")}, '') as statement
  from pg_user_mappings`;

/** Before Postgres 15 a publication contains whole tables only. */
const publishedTables = `(
  select ' for table ' || string_agg('only ' || prrelid::regclass, ', ' order by prrelid::regclass::text collate "C")
  from pg_publication_rel where prpubid = item.oid having count(*) > 0
)`;

const publishedParts = `(
  select ' for ' || string_agg(part, ', ' order by part collate "C") from (
    select concat(
      'table only ', prrelid::regclass,
      (
        select format(' (%s)', string_agg(quote_ident(attname), ', ' order by attnum))
        from pg_attribute where attrelid = prrelid and attnum = any (prattrs) having count(*) > 0
      ),
      ' where (' || pg_get_expr(prqual, prrelid) || ')'
    ) as part
    from pg_publication_rel where prpubid = item.oid
    union all
    select format('tables in schema %I', nspname)
    from pg_publication_namespace join pg_namespace on pg_namespace.oid = pnnspid where pnpubid = item.oid
  ) as parts having count(*) > 0
)`;

const publications = (version: number) =>
  objects("pg_publication", "item.oid", {
    statement: `concat(
      format('create publication %I', pubname),
      case when puballtables then ' for all tables' end,
      ${version >= 150000 ? publishedParts : publishedTables},
      format(
        ' with (publish = %L, publish_via_partition_root = %s',
        concat_ws(', ', case when pubinsert then 'insert' end, case when pubupdate then 'update' end,
          case when pubdelete then 'delete' end, case when pubtruncate then 'truncate' end),
        pubviaroot::text
      ),
      ${version >= 180000 ? "case pubgencols when 's' then ', publish_generated_columns = stored' end," : ""}
      ')'
    )`,
    from: "pg_publication as item",
    where: "true",
  });

/** The objects are created in the order of their dependencies. */
export const typeObjects = [
  schemas,
  extensions,
  collations,
  enums,
  composites,
  domains,
  domainConstraints,
  ranges,
  functions,
  aggregates,
  operators,
  casts,
  dictionaries,
  textSearchConfigurations,
  foreignDataWrappers,
  foreignServers,
  userMappings,
];

export const publicationStatements = (version: number) => [publications(version)];
