import {
  constraintLine,
  type DefinitionForm,
  defineAlterations,
  defineObjects,
  firingClause,
  IS_PERMANENT,
  isOwnRelation,
  isUsers,
  objectLabel,
  partOfTable,
  roleName,
} from "./definition.ts";

const CLASS = objectLabel("pg_class", "class.oid");

/** An archive leaves out indexes that are not valid, because their creation failed. */
export const indexes = ({ isArchive }: DefinitionForm) =>
  defineObjects("pg_class", "class.oid", {
    statement: "pg_get_indexdef(class.oid)",
    from: "pg_class as class join pg_index on indexrelid = class.oid",
    where: `${isArchive ? "(indisvalid or relkind = 'I') and" : ""} ${IS_PERMANENT} and ${isOwnRelation("indrelid")} and not exists (
      select from pg_constraint where conindid = indexrelid and conrelid = indrelid and contype in ('p', 'u', 'x')
    )`,
    part: {
      of: objectLabel("pg_class", "indrelid"),
      name: "'index ' || quote_ident(relname)",
      remove: "'drop index ' || class.oid::regclass",
    },
  });

const addedConstraints = (where: string) =>
  defineObjects("pg_constraint", "item.oid", {
    statement: `format(
      'alter table %s%s add %s', case when relkind = 'p' and contype in ('p', 'u', 'x') then 'only ' end,
      class.oid::regclass, ${constraintLine("item.oid")}
    )`,
    from: "pg_constraint as item join pg_class as class on class.oid = conrelid",
    where: `${where} and ${IS_PERMANENT} and ${isOwnRelation("conrelid")}`,
  });

/** Partitions have their own keys, which are attached to those of the parent; they inherit checks and foreign keys. */
export const constraints = addedConstraints("(contype in ('p', 'u', 'x') or contype = 'c' and conislocal)");
export const foreignKeys = addedConstraints("contype = 'f' and conparentid = 0");

/** Comparisons have the defaults of tables with their columns. */
export const defaults = ({ isArchive }: DefinitionForm) =>
  defineObjects("pg_attrdef", "item.oid", {
    statement: `format(
      'alter table %s%s alter column %I set default %s', case when relkind <> 'v' then 'only ' end,
      adrelid::regclass, attname, pg_get_expr(adbin, adrelid)
    )`,
    from: `pg_attrdef as item
      join pg_class as class on class.oid = adrelid
      join pg_attribute on attrelid = adrelid and attnum = adnum`,
    where: `attgenerated = '' and ${isArchive ? "" : "relkind = 'v' and"} ${IS_PERMANENT} and ${isOwnRelation("adrelid")}`,
    part: {
      of: CLASS,
      name: "'the default of column ' || quote_ident(attname)",
      remove: "format('alter table %s alter column %I drop default', class.oid::regclass, attname)",
    },
    replacement: "statement",
  });

export const rules = defineObjects("pg_rewrite", "item.oid", {
  statement: `concat(
    rtrim(pg_get_ruledef(item.oid), ';'),
    e';\\nalter table ' || ev_class::regclass || ' ' || ${firingClause("ev_enabled")} || ' rule ' || quote_ident(rulename)
  )`,
  from: "pg_rewrite as item",
  where: `rulename <> '_RETURN' and ${isOwnRelation("ev_class")}`,
  part: partOfTable("rule", "rulename", "ev_class"),
});

/** Comparisons leave out triggers of webhooks, which follow from rows. */
export const triggers = ({ isArchive }: DefinitionForm) =>
  defineObjects("pg_trigger", "item.oid", {
    statement: `concat(
      pg_get_triggerdef(item.oid),
      e';\\nalter table ' || tgrelid::regclass || ' ' || ${firingClause("tgenabled")} || ' trigger ' || quote_ident(tgname)
    )`,
    from: "pg_trigger as item",
    where: `not tgisinternal and tgparentid = 0 and ${isOwnRelation("tgrelid")}
      ${isArchive ? "" : "and tgfoid is distinct from to_regprocedure('content_service.tg__webhook()')"}`,
    part: partOfTable("trigger", "tgname", "tgrelid"),
  });

/** An archive has policies on tables of extensions, too, of which some are made by the extension. */
export const policies = (form: DefinitionForm) =>
  defineObjects("pg_policy", "item.oid", {
    statement: `concat(
      case when not (${isOwnRelation("polrelid")}) then format('drop policy if exists %I on %s; ', polname, polrelid::regclass) end,
      format('create policy %I on %s', polname, polrelid::regclass),
      case when not polpermissive then ' as restrictive' end,
      ' for ', case polcmd
        when 'r' then 'select' when 'a' then 'insert' when 'w' then 'update' when 'd' then 'delete' else 'all' end,
      ' to ', (
        select string_agg(${roleName("role", form)}, ', ' order by role::regrole::text) from unnest(polroles) as role
      ),
      ' using (' || pg_get_expr(polqual, polrelid) || ')',
      ' with check (' || pg_get_expr(polwithcheck, polrelid) || ')'
    )`,
    from: "pg_policy as item",
    where: form.isArchive ? "true" : isOwnRelation("polrelid"),
    part: partOfTable("policy", "polname", "polrelid"),
  });

export const statistics = defineObjects("pg_statistic_ext", "item.oid", {
  statement: `concat(
    pg_get_statisticsobjdef(item.oid),
    format(e';\\nalter statistics %I.%I set statistics ', nspname, stxname) || case when stxstattarget >= 0 then stxstattarget end
  )`,
  from: "pg_statistic_ext as item join pg_namespace on pg_namespace.oid = stxnamespace",
  where: isOwnRelation("stxrelid"),
});

export const eventTriggers = defineObjects("pg_event_trigger", "item.oid", {
  statement: `concat(
    format('create event trigger %I on %s', evtname, evtevent),
    ' when tag in (' || (select string_agg(quote_literal(tag), ', ') from unnest(evttags) as tag) || ')',
    ' execute function ', evtfoid::regproc, '()',
    e';\\nalter event trigger ' || quote_ident(evtname) || ' ' || ${firingClause("evtenabled")}
  )`,
  from: "pg_event_trigger as item",
});

export const attachedPartitions = defineAlterations({
  statement:
    "format('alter table only %s attach partition %s %s', inhparent::regclass, class.oid::regclass, pg_get_expr(relpartbound, class.oid))",
  from: "pg_class as class join pg_inherits on inhrelid = class.oid",
  where: "relispartition and relkind in ('r', 'p', 'f')",
  part: {
    of: CLASS,
    name: "'the partition bound'",
    remove: "format('alter table %s detach partition %s', inhparent::regclass, class.oid::regclass)",
  },
});

export const typedTables = defineAlterations({
  statement: "format('alter table %s of %s', class.oid::regclass, reloftype::regtype)",
  from: "pg_class as class",
  where: "reloftype <> 0",
  part: { of: CLASS, name: "'the type'", remove: "format('alter table %s not of', class.oid::regclass)" },
});

/** Inherited columns are created with the parent. */
export const inheritedNotNulls = defineAlterations({
  statement: "format('alter table only %s alter column %I set not null', class.oid::regclass, attname)",
  from: "pg_class as class join pg_attribute on attrelid = class.oid",
  where:
    "attnum > 0 and not attisdropped and not attislocal and not relispartition and attnotnull and relkind in ('r', 'p', 'f')",
});

export const unvalidatedNotNulls = defineAlterations({
  statement: `format('alter table %s add %s', class.oid::regclass, ${constraintLine("item.oid")})`,
  from: "pg_constraint as item join pg_class as class on class.oid = conrelid",
  where: "contype = 'n' and conislocal and not convalidated",
});

export const attachedIndexes = defineAlterations({
  statement: "format('alter index %s attach partition %s', inhparent::regclass, class.oid::regclass)",
  from: "pg_class as class join pg_inherits on inhrelid = class.oid",
  where: "relispartition and relkind in ('i', 'I')",
});

export const ownedSequences = defineAlterations({
  statement: "format('alter sequence %s owned by %s.%I', class.oid::regclass, attrelid::regclass, attname)",
  from: `pg_class as class
    join pg_depend on classid = 'pg_class'::regclass and objid = class.oid and deptype = 'a' and refclassid = 'pg_class'::regclass
    join pg_attribute on attrelid = refobjid and attnum = refobjsubid`,
  where: "relkind = 'S'",
  part: { of: CLASS, name: "'the column'", remove: "format('alter sequence %s owned by none', class.oid::regclass)" },
});

/** Administrators may also set these flags of an extension's tables, which only an archive has. */
export const tableSettings = ({ isArchive }: DefinitionForm) =>
  defineAlterations(
    {
      statement: "format('alter table %s %s', class.oid::regclass, setting)",
      from: `pg_class as class cross join lateral (values
        (relrowsecurity, 'row-level security (enable)', 'enable row level security', 'disable row level security'),
        (relforcerowsecurity, 'row-level security (force)', 'force row level security', 'no force row level security'),
        (relreplident = 'f', 'the replica identity', 'replica identity full', 'replica identity default'),
        (relreplident = 'n', 'the replica identity', 'replica identity nothing', 'replica identity default')
      ) as flag (holds, label, setting, reset)`,
      where: "relkind in ('r', 'p') and holds",
      part: { of: CLASS, name: "label", remove: "format('alter table %s %s', class.oid::regclass, reset)" },
      replacement: "statement",
    },
    ...(isArchive ? [isUsers("class.oid")] : []),
  );

export const indexSettings = defineAlterations({
  statement: "format('alter table %s %s %I', indrelid::regclass, setting, class.relname)",
  from: `pg_class as class join pg_index on indexrelid = class.oid cross join lateral (values
    (indisreplident, 'the replica identity', 'replica identity using index', 'replica identity default'),
    (indisclustered, 'the clustering', 'cluster on', 'set without cluster')
  ) as flag (holds, label, setting, reset)`,
  where: "holds",
  part: {
    of: objectLabel("pg_class", "indrelid"),
    name: "label",
    remove: "format('alter table %s %s', indrelid::regclass, reset)",
  },
  replacement: "statement",
});

export const constraintIndexOptions = defineAlterations({
  statement: "format('alter index %s set (%s)', class.oid::regclass, array_to_string(reloptions, ', '))",
  from: "pg_class as class join pg_constraint on conindid = class.oid and contype in ('p', 'u', 'x')",
  where: "reloptions is not null",
  part: {
    of: objectLabel("pg_class", "conrelid"),
    name: "'the options of index ' || quote_ident(relname)",
    remove: `format('alter index %s reset (%s)', class.oid::regclass, (
      select string_agg(split_part(option, '=', 1), ', ') from unnest(reloptions) as option
    ))`,
  },
});

export const columnSettings = defineAlterations({
  statement: "concat(target, setting)",
  from: `pg_class as class
    join pg_attribute on attrelid = class.oid and attnum > 0 and not attisdropped
    join pg_type on pg_type.oid = atttypid
    cross join lateral (select format(
      'alter %s %s alter column %s ', case when relkind in ('i', 'I') then 'index' else 'table only' end,
      class.oid::regclass, case when relkind in ('i', 'I') then attnum::text else quote_ident(attname) end
    ) as target) as altered
    cross join lateral (values
      ('statistics', case when coalesce(attstattarget, -1) >= 0 then 'set statistics ' || attstattarget end, 'set statistics -1'),
      -- Some builds of Postgres keep options of their own here, which cannot be set.
      (
        'options',
        (select 'set (' || string_agg(option, ', ') || ')' from unnest(attoptions) as option where option like 'n_distinct%'),
        'reset (n_distinct, n_distinct_inherited)'
      ),
      (
        'storage',
        case when relkind in ('r', 'p', 'm') and attstorage <> typstorage then 'set storage ' || ${storageName("attstorage")} end,
        'set storage ' || ${storageName("typstorage")}
      )
    ) as change (label, setting, reset)`,
  where: "relkind in ('r', 'p', 'm', 'f', 'i', 'I') and setting is not null",
  part: {
    of: `coalesce((select ${objectLabel("pg_class", "indrelid")} from pg_index where indexrelid = class.oid), ${CLASS})`,
    name: `concat(
      'the ', label, ' of column ', case when relkind in ('i', 'I') then attnum || ' of index ' || quote_ident(relname)
        else quote_ident(attname) end
    )`,
    remove: "concat(target, reset)",
  },
});

function storageName(column: string): string {
  return `case ${column} when 'p' then 'plain' when 'e' then 'external' when 'm' then 'main' else 'extended' end`;
}

export const refreshes = defineAlterations({
  statement: "format('refresh materialized view %s', class.oid::regclass)",
  from: "pg_class as class",
  where: "relkind = 'm' and relispopulated",
});
