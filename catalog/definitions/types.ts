import {
  collationClause,
  constraintLine,
  type DefinitionForm,
  defineObjects,
  foreignOptions,
  functionOption,
  IS_PERMANENT,
  isExtensionMember,
  isOwn,
  nameInSchema,
  objectLabel,
  roleName,
  SCHEMA_PUBLIC,
} from "./definition.ts";

/** Every new database has a schema `public`; an archive creates a schema that replaces it again. */
const schemas = ({ isArchive }: DefinitionForm) => ({
  catalog: "pg_namespace",
  oid: "item.oid",
  statement: isArchive
    ? `concat(
        case when nspname = 'public' then 'drop schema if exists public; ' end,
        'create schema if not exists ', quote_ident(nspname)
      )`
    : "'create schema ' || quote_ident(nspname)",
  from: "pg_namespace as item",
  where: `nspname !~ '^pg_'
    and (${isOwn("pg_namespace", "item.oid")} ${isArchive ? "" : `or item.oid = ${SCHEMA_PUBLIC}`})`,
});

const extensions = ({ isArchive }: DefinitionForm) => ({
  catalog: "pg_extension",
  oid: "item.oid",
  statement: `format('create extension ${isArchive ? "if not exists " : ""}%I', extname) || coalesce((
    select format(' with schema %I', nspname) from pg_namespace
    where pg_namespace.oid = extnamespace and not exists (
      select from pg_depend
      where classid = 'pg_namespace'::regclass and objid = extnamespace and deptype = 'e' and refobjid = item.oid
    )
  ), '')`,
  from: "pg_extension as item",
  where: "extname <> 'plpgsql'",
});

const enums = defineObjects("pg_type", "item.oid", {
  statement: `format('create type %s as enum (%s)', format_type(item.oid, null), (
    select string_agg(quote_literal(enumlabel), ', ' order by enumsortorder) from pg_enum where enumtypid = item.oid
  ))`,
  from: "pg_type as item",
  where: "typtype = 'e'",
});

const composites = defineObjects("pg_type", "item.oid", {
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

/** The constraints of a domain may call functions, which an archive creates before. */
const domains = ({ isArchive }: DefinitionForm) =>
  defineObjects("pg_type", "item.oid", {
    statement: `concat(
      format('create domain %s as %s', format_type(item.oid, null), format_type(typbasetype, typtypmod)),
      ${collationClause("typcollation", "typbasetype")},
      ' default ' || coalesce(pg_get_expr(typdefaultbin, 0), quote_literal(typdefault)),
      case when typnotnull then ' not null' end
      ${isArchive ? "" : `, (select string_agg(e'\\n  ' || ${constraintLine("pg_constraint.oid")}, '' order by conname) from pg_constraint where contypid = item.oid and contype = 'c')`}
    )`,
    from: "pg_type as item",
    where: "typtype = 'd'",
  });

const domainConstraints = defineObjects("pg_constraint", "item.oid", {
  statement: `format('alter domain %s add %s', format_type(contypid, null), ${constraintLine("item.oid")})`,
  from: "pg_constraint as item",
  where: `contypid <> 0 and contype = 'c' and not ${isExtensionMember("'pg_type'::regclass", "contypid")}`,
});

/** A canonical function needs the type before it exists, which an archive cannot write. */
const ranges = ({ isArchive }: DefinitionForm) =>
  defineObjects("pg_type", "item.oid", {
    statement: `concat(
      format(
        'create type %s as range (subtype = %s, multirange_type_name = %s, subtype_opclass = %s',
        format_type(item.oid, null), format_type(rngsubtype, null), format_type(rngmultitypid, null),
        (
          select format('%I.%I', nspname, opcname)
          from pg_opclass join pg_namespace on pg_namespace.oid = opcnamespace where pg_opclass.oid = rngsubopc
        )
      ),
      ', collation = ' || ${nameInSchema("pg_collation", "rngcollation")},
      ${functionOption("subtype_diff", "rngsubdiff")}, ${functionOption("canonical", "rngcanonical")}, ')'
    )`,
    from: "pg_type as item join pg_range on rngtypid = item.oid",
    where: isArchive ? "rngcanonical = 0" : "true",
  });

const collations = defineObjects("pg_collation", "item.oid", {
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
});

const functions = defineObjects("pg_proc", "item.oid", {
  statement: "rtrim(pg_get_functiondef(item.oid), e'\\n')",
  replacement: "statement",
  from: "pg_proc as item",
  where: "prokind <> 'a'",
});

const finalModify = (column: string) =>
  `case ${column} when 'r' then 'read_only' when 's' then 'shareable' else 'read_write' end`;

const aggregates = defineObjects("pg_proc", "item.oid", {
  statement: `concat(
    format('create aggregate %I.%I(%s) (', nspname, proname, coalesce(nullif(pg_get_function_arguments(item.oid), ''), '*')),
    'sfunc = ', aggtransfn::regproc, ', stype = ', format_type(aggtranstype, null),
    case when aggtransspace > 0 then ', sspace = ' || aggtransspace end,
    ${functionOption("finalfunc", "aggfinalfn")},
    case when aggfinalextra then ', finalfunc_extra' end,
    case when aggfinalfn <> 0 then ', finalfunc_modify = ' || ${finalModify("aggfinalmodify")} end,
    ${functionOption("combinefunc", "aggcombinefn")},
    ${functionOption("serialfunc", "aggserialfn")},
    ${functionOption("deserialfunc", "aggdeserialfn")},
    ', initcond = ' || quote_literal(agginitval),
    ${functionOption("msfunc", "aggmtransfn")},
    ${functionOption("minvfunc", "aggminvtransfn")},
    case when aggmtransfn <> 0 then ', mstype = ' || format_type(aggmtranstype, null) end,
    case when aggmtransspace > 0 then ', msspace = ' || aggmtransspace end,
    ${functionOption("mfinalfunc", "aggmfinalfn")},
    case when aggmfinalextra then ', mfinalfunc_extra' end,
    case when aggmfinalfn <> 0 then ', mfinalfunc_modify = ' || ${finalModify("aggmfinalmodify")} end,
    ', minitcond = ' || quote_literal(aggminitval),
    ', sortop = operator(' || ${nameInSchema("pg_operator", "aggsortop")} || ')',
    case when aggkind = 'h' then ', hypothetical' end,
    case proparallel when 's' then ', parallel = safe' when 'r' then ', parallel = restricted' end,
    ')'
  )`,
  from: `pg_proc as item
    join pg_aggregate on aggfnoid = item.oid join pg_namespace on pg_namespace.oid = pronamespace`,
});

/** Postgres 14 and later have no postfix operators. */
const operators = defineObjects("pg_operator", "item.oid", {
  statement: `concat(
    format('create operator %I.%s (function = %s', nspname, oprname, oprcode::oid::regproc),
    case when oprleft <> 0 then ', leftarg = ' || format_type(oprleft, null) end,
    ', rightarg = ', format_type(oprright, null),
    ', commutator = operator(' || ${nameInSchema("pg_operator", "item.oprcom")} || ')',
    ', negator = operator(' || ${nameInSchema("pg_operator", "item.oprnegate")} || ')',
    ${functionOption("restrict", "oprrest")}, ${functionOption("join", "oprjoin")},
    case when oprcanhash then ', hashes' end,
    case when oprcanmerge then ', merges' end,
    ')'
  )`,
  from: "pg_operator as item join pg_namespace on pg_namespace.oid = oprnamespace",
  where: "oprcode <> 0",
});

const casts = defineObjects("pg_cast", "item.oid", {
  statement: `concat(
    format('create cast (%s as %s) ', format_type(castsource, null), format_type(casttarget, null)),
    case castmethod when 'i' then 'with inout' when 'b' then 'without function'
      else 'with function ' || castfunc::regprocedure end,
    case castcontext when 'a' then ' as assignment' when 'i' then ' as implicit' end
  )`,
  from: "pg_cast as item",
});

const dictionaries = defineObjects("pg_ts_dict", "item.oid", {
  statement: `format('create text search dictionary %I.%I (template = %I.%I%s)', own_schema.nspname, dictname,
    template_schema.nspname, tmplname, ', ' || dictinitoption)`,
  from: `pg_ts_dict as item
    join pg_namespace as own_schema on own_schema.oid = dictnamespace
    join pg_ts_template as template on template.oid = dicttemplate
    join pg_namespace as template_schema on template_schema.oid = tmplnamespace`,
});

const textSearchConfigurations = defineObjects("pg_ts_config", "item.oid", {
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
});

const foreignDataWrappers = defineObjects("pg_foreign_data_wrapper", "item.oid", {
  statement: `concat(
    format('create foreign data wrapper %I', fdwname),
    case when fdwhandler <> 0 then ' handler ' || fdwhandler::regproc end,
    case when fdwvalidator <> 0 then ' validator ' || fdwvalidator::regproc end,
    ${foreignOptions("fdwoptions")}
  )`,
  from: "pg_foreign_data_wrapper as item",
});

const foreignServers = defineObjects("pg_foreign_server", "item.oid", {
  statement: `concat(
    format('create server %I', srvname), ' type ' || quote_literal(srvtype), ' version ' || quote_literal(srvversion),
    format(' foreign data wrapper %I', fdwname), ${foreignOptions("srvoptions")}
  )`,
  from: "pg_foreign_server as item join pg_foreign_data_wrapper on pg_foreign_data_wrapper.oid = srvfdw",
});

/** The view hides options, which may contain passwords, from roles that may not read them; the table is readable by superusers only. */
export const userMappings = `
  select 'pg_user_mapping'::regclass::oid as catalog, umid as oid, format('user mapping of %s for %s', srvname, usename) as object,
    format('create user mapping for %s server %I', ${roleName("umuser", { isArchive: true })}, srvname)
      || coalesce(${foreignOptions("umoptions")}, '') as statement
  from pg_user_mappings`;

/** Before Postgres 15 a publication contains whole tables only. */
const publishedTable = ({ version }: DefinitionForm) =>
  version < 150000
    ? "'table only ' || prrelid::regclass"
    : `concat(
        'table only ', prrelid::regclass,
        (
          select format(' (%s)', string_agg(quote_ident(attname), ', ' order by attnum))
          from pg_attribute where attrelid = prrelid and attnum = any (prattrs) having count(*) > 0
        ),
        ' where (' || pg_get_expr(prqual, prrelid) || ')'
      )`;

const publishedTables = (form: DefinitionForm) =>
  `select ${publishedTable(form)} from pg_publication_rel where prpubid = item.oid`;

const publishedSchemas = ({ version }: DefinitionForm) =>
  version < 150000
    ? "select null::text where false"
    : `select format('tables in schema %I', nspname)
      from pg_publication_namespace join pg_namespace on pg_namespace.oid = pnnspid where pnpubid = item.oid`;

const publicationOf = ({ version }: DefinitionForm, parts: string) => `concat(
  format('create publication %I', pubname),
  case when puballtables then ' for all tables' end,
  (select ' for ' || string_agg(part, ', ' order by part collate "C") from (${parts}) as parts (part) having count(*) > 0),
  format(
    ' with (publish = %L, publish_via_partition_root = %s',
    concat_ws(', ', case when pubinsert then 'insert' end, case when pubupdate then 'update' end,
      case when pubdelete then 'delete' end, case when pubtruncate then 'truncate' end),
    pubviaroot::text
  ),
  ${version >= 180000 ? "case pubgencols when 's' then ', publish_generated_columns = stored' end," : ""}
  ')'
)`;

export const publications = (form: DefinitionForm) =>
  defineObjects("pg_publication", "item.oid", {
    statement: publicationOf(form, `${publishedTables(form)} union all ${publishedSchemas(form)}`),
    text: publicationOf(form, publishedSchemas(form)),
    from: "pg_publication as item",
  });

/** A query of `SchemaRow`: the tables of publications are compared as parts of the tables, since those that create one may publish it. */
export const publishedTableQuery = (form: DefinitionForm) => `
  select object, format('publication %I of %s', pubname, object) as name, statement as text, statement,
    format('alter publication %I drop table only %s', pubname, target) as remove, null as replacement,
    'publication ' || quote_ident(pubname) as "otherObject"
  from (
    select ${objectLabel("pg_class", "prrelid")} as object, pubname, prrelid::regclass as target,
      format('alter publication %I add %s', pubname, ${publishedTable(form)}) as statement
    from pg_publication_rel join pg_publication on pg_publication.oid = prpubid
    where ${isOwn("pg_publication", "prpubid")}
  ) as published`;

/** The definitions in the order of their dependencies. */
export function typeDefinitions(form: DefinitionForm) {
  return [
    schemas(form),
    extensions(form),
    collations,
    enums,
    composites,
    domains(form),
    ...(form.isArchive ? [domainConstraints] : []),
    ranges(form),
    functions,
    aggregates,
    operators,
    casts,
    dictionaries,
    textSearchConfigurations,
    foreignDataWrappers,
    foreignServers,
  ];
}
