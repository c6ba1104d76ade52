import {
  FIRST_OBJECT_ID,
  foreignOptions,
  IS_PERMANENT,
  isOwn,
  isOwnRelation,
  objectName,
  objects,
  roleName,
} from "./fragments.ts";

const notNull = (version: number) =>
  version >= 180000
    ? `(
        select format('constraint %I not null', conname) || case when connoinherit then ' no inherit' else '' end
        from pg_constraint
        where conrelid = attrelid and contype = 'n' and conkey = array[attnum] and convalidated
      )`
    : "case when attnotnull then 'not null' end";

const sequenceOptions = `format(
  'start with %s increment by %s minvalue %s maxvalue %s cache %s%s',
  seqstart, seqincrement, seqmin, seqmax, seqcache, case when seqcycle then ' cycle' end
)`;

const identity = `(
  select format(
    'generated %s as identity (sequence name %s %s)',
    case attidentity when 'a' then 'always' else 'by default' end, seqrelid::regclass, ${sequenceOptions}
  )
  from pg_depend join pg_sequence on seqrelid = objid
  where refclassid = 'pg_class'::regclass and refobjid = attrelid and refobjsubid = attnum and deptype = 'i'
    and classid = 'pg_class'::regclass and attidentity <> ''
)`;

const collation = (type: string) => `(
  select format('collate %I.%I', collnspace.nspname, collname)
  from pg_collation
  join pg_namespace as collnspace on collnspace.oid = collnamespace
  join pg_type on pg_type.oid = ${type}
  where pg_collation.oid = attcollation and attcollation <> typcollation
)`;

/** The columns of a table. Partitions have the columns of their parent, but in their own order. */
const columns = (version: number) => `(
  select string_agg(concat_ws(
    ' ',
    format('  %I %s', attname, format_type(atttypid, atttypmod)),
    case attcompression when 'p' then 'compression pglz' when 'l' then 'compression lz4' end,
    ltrim(${foreignOptions("attfdwoptions")}),
    ${collation("atttypid")},
    ${version >= 170000 ? `case when not class.relispartition then ${identity} end` : identity},
    (
      select format(
        'generated always as (%s) %s', pg_get_expr(adbin, adrelid),
        case attgenerated when 's' then 'stored' else 'virtual' end
      )
      from pg_attrdef where adrelid = attrelid and adnum = attnum and attgenerated <> ''
    ),
    ${notNull(version)}
  ), e',\\n' order by attnum)
  from pg_attribute
  where attrelid = class.oid and attnum > 0 and not attisdropped and (attislocal or class.relispartition)
)`;

const tables = (version: number) =>
  objects("pg_class", "class.oid", {
    statement: `concat(
      'create ', case when relpersistence = 'u' then 'unlogged ' end, case when relkind = 'f' then 'foreign ' end,
      'table ', class.oid::regclass, e' (\\n', ${columns(version)}, e'\\n)',
      (
        select ' inherits (' || string_agg(inhparent::regclass::text, ', ' order by inhseqno) || ')'
        from pg_inherits where inhrelid = class.oid and not relispartition having count(*) > 0
      ),
      case when relkind = 'p' then ' partition by ' || pg_get_partkeydef(class.oid) end,
      (select format(' using %I', amname) from pg_am where pg_am.oid = relam and amname <> 'heap'),
      ' with (' || (
        select string_agg(option, ', ') from (
          select unnest(class.reloptions)
          union all
          select 'toast.' || unnest(toast.reloptions) from pg_class as toast where toast.oid = class.reltoastrelid
        ) as options (option)
      ) || ')',
      (
        select format(' server %I', srvname) || coalesce(${foreignOptions("ftoptions")}, '')
        from pg_foreign_table join pg_foreign_server on pg_foreign_server.oid = ftserver where ftrelid = class.oid
      )
    )`,
    from: "pg_class as class",
    where: `relkind in ('r', 'p', 'f') and ${IS_PERMANENT}`,
  });

const sequences = objects("pg_class", "class.oid", {
  statement: `format(
    'create %ssequence %s as %s %s', case when relpersistence = 'u' then 'unlogged ' end,
    class.oid::regclass, format_type(seqtypid, null), ${sequenceOptions}
  )`,
  from: "pg_class as class join pg_sequence on seqrelid = class.oid",
  where: `${IS_PERMANENT} and not exists (
    select from pg_depend where classid = 'pg_class'::regclass and objid = class.oid and deptype = 'i'
  )`,
});

const views = objects("pg_class", "class.oid", {
  statement: `concat(
    'create ', case when relkind = 'm' then 'materialized ' end, 'view ', class.oid::regclass,
    (select format(' using %I', amname) from pg_am where pg_am.oid = relam and amname <> 'heap'),
    ' with (' || array_to_string(reloptions, ', ') || ')', e' as\\n', rtrim(pg_get_viewdef(class.oid), ';'),
    case when relkind = 'm' then e'\\n  with no data' end
  )`,
  from: "pg_class as class",
  where: `relkind in ('v', 'm') and ${IS_PERMANENT}`,
});

const indexes = objects("pg_class", "class.oid", {
  statement: "pg_get_indexdef(class.oid)",
  from: "pg_class as class join pg_index on indexrelid = class.oid",
  // An index whose creation failed is not valid.
  where: `(indisvalid or relkind = 'I') and ${IS_PERMANENT} and ${isOwnRelation("indrelid")} and not exists (
    select from pg_constraint where conindid = indexrelid and conrelid = indrelid and contype in ('p', 'u', 'x')
  )`,
});

/** Partitions have their own keys, which are attached to those of the parent; they inherit checks and foreign keys. */
const constraints = objects("pg_constraint", "item.oid", {
  statement: `format(
    'alter table %s%s add constraint %I %s',
    case when relkind = 'p' and contype in ('p', 'u', 'x') then 'only ' end,
    class.oid::regclass, conname, pg_get_constraintdef(item.oid)
  )`,
  from: "pg_constraint as item join pg_class as class on class.oid = conrelid",
  where: `(contype in ('p', 'u', 'x') or contype = 'c' and conislocal) and ${isOwnRelation("conrelid")}`,
});

const foreignKeys = objects("pg_constraint", "item.oid", {
  statement: `format(
    'alter table %s add constraint %I %s', conrelid::regclass, conname, pg_get_constraintdef(item.oid)
  )`,
  from: "pg_constraint as item",
  where: `contype = 'f' and conparentid = 0 and ${isOwnRelation("conrelid")}`,
});

const defaults = objects("pg_attrdef", "item.oid", {
  statement: `format(
    'alter table %s%s alter column %I set default %s', case when relkind <> 'v' then 'only ' end,
    adrelid::regclass, attname, pg_get_expr(adbin, adrelid)
  )`,
  from: `pg_attrdef as item
    join pg_class as class on class.oid = adrelid
    join pg_attribute on attrelid = adrelid and attnum = adnum`,
  where: `attgenerated = '' and ${IS_PERMANENT} and ${isOwnRelation("adrelid")}`,
});

const rules = objects("pg_rewrite", "item.oid", {
  statement: `concat(
    rtrim(pg_get_ruledef(item.oid), ';'),
    '; alter table ' || ev_class::regclass || ' ' || ${firing("ev_enabled")} || ' rule ' || quote_ident(rulename)
  )`,
  from: "pg_rewrite as item",
  where: `rulename <> '_RETURN' and ${isOwnRelation("ev_class")}`,
});

const triggers = objects("pg_trigger", "item.oid", {
  statement: `concat(
    pg_get_triggerdef(item.oid),
    '; alter table ' || tgrelid::regclass || ' ' || ${firing("tgenabled")} || ' trigger ' || quote_ident(tgname)
  )`,
  from: "pg_trigger as item",
  where: `not tgisinternal and tgparentid = 0 and ${isOwnRelation("tgrelid")}`,
});

const policies = objects("pg_policy", "item.oid", {
  // The table of an extension may have the policy already.
  statement: `concat(
    case when not (${isOwnRelation("polrelid")}) then format('drop policy if exists %I on %s; ', polname, polrelid::regclass) end,
    format('create policy %I on %s', polname, polrelid::regclass),
    case when not polpermissive then ' as restrictive' end,
    ' for ', case polcmd
      when 'r' then 'select' when 'a' then 'insert' when 'w' then 'update' when 'd' then 'delete' else 'all' end,
    ' to ', (select string_agg(${roleName("role")}, ', ' order by role::regrole::text) from unnest(polroles) as role),
    ' using (' || pg_get_expr(polqual, polrelid) || ')',
    ' with check (' || pg_get_expr(polwithcheck, polrelid) || ')'
  )`,
  from: "pg_policy as item",
  where: "true",
});

const statistics = objects("pg_statistic_ext", "item.oid", {
  statement: `concat(
    pg_get_statisticsobjdef(item.oid),
    format('; alter statistics %I.%I set statistics ', nspname, stxname) || case when stxstattarget >= 0 then stxstattarget end
  )`,
  from: "pg_statistic_ext as item join pg_namespace on pg_namespace.oid = stxnamespace",
  where: isOwnRelation("stxrelid"),
});

const eventTriggers = objects("pg_event_trigger", "item.oid", {
  statement: `concat(
    format('create event trigger %I on %s', evtname, evtevent),
    ' when tag in (' || (select string_agg(quote_literal(tag), ', ') from unnest(evttags) as tag) || ')',
    ' execute function ', evtfoid::regproc, '()',
    '; alter event trigger ' || quote_ident(evtname) || ' ' || ${firing("evtenabled")}
  )`,
  from: "pg_event_trigger as item",
  where: "true",
});

/** Excludes the relations of an extension, which sets their properties itself. */
const IS_OWN_CLASS = `${isOwn("pg_class", "class.oid")} and not exists (
  select from pg_index as part where part.indexrelid = class.oid and not (${isOwnRelation("part.indrelid")})
)`;

/** Returns statements about a part of a table, whose catalog row has no number. */
function alterations(statement: string, from: string, where: string, isIncluded = IS_OWN_CLASS): string {
  return `
    select 'pg_class'::regclass::oid as catalog, class.oid, ${objectName("pg_class", "class.oid")} as object,
      ${statement} as statement
    from ${from}
    where ${isIncluded} and ${IS_PERMANENT} and ${where}`;
}

const attachedPartitions = alterations(
  "format('alter table only %s attach partition %s %s', inhparent::regclass, class.oid::regclass, pg_get_expr(relpartbound, class.oid))",
  "pg_class as class join pg_inherits on inhrelid = class.oid",
  "relispartition and relkind in ('r', 'p', 'f')",
);

const typedTables = alterations(
  "format('alter table %s of %s', class.oid::regclass, reloftype::regtype)",
  "pg_class as class",
  "reloftype <> 0",
);

/** Inherited columns are created with the parent. */
const inheritedNotNulls = alterations(
  "format('alter table only %s alter column %I set not null', class.oid::regclass, attname)",
  "pg_class as class join pg_attribute on attrelid = class.oid",
  "attnum > 0 and not attisdropped and not attislocal and not relispartition and attnotnull and relkind in ('r', 'p', 'f')",
);

const unvalidatedNotNulls = alterations(
  "format('alter table %s add constraint %I %s', class.oid::regclass, conname, pg_get_constraintdef(item.oid))",
  "pg_constraint as item join pg_class as class on class.oid = conrelid",
  "contype = 'n' and conislocal and not convalidated",
);

const attachedIndexes = alterations(
  "format('alter index %s attach partition %s', inhparent::regclass, class.oid::regclass)",
  "pg_class as class join pg_inherits on inhrelid = class.oid",
  "relispartition and relkind in ('i', 'I')",
);

const ownedSequences = alterations(
  "format('alter sequence %s owned by %s.%I', class.oid::regclass, attrelid::regclass, attname)",
  `pg_class as class
    join pg_depend on classid = 'pg_class'::regclass and objid = class.oid and deptype = 'a' and refclassid = 'pg_class'::regclass
    join pg_attribute on attrelid = refobjid and attnum = refobjsubid`,
  "relkind = 'S'",
);

const tableSettings = alterations(
  "format('alter table %s %s', class.oid::regclass, setting)",
  `pg_class as class cross join lateral (values
    (relrowsecurity, 'enable row level security'),
    (relforcerowsecurity, 'force row level security'),
    (relreplident = 'f', 'replica identity full'),
    (relreplident = 'n', 'replica identity nothing')
  ) as flag (holds, setting)`,
  "relkind in ('r', 'p') and holds",
  // Administrators may also set these flags of an extension's tables.
  `class.oid >= ${FIRST_OBJECT_ID}`,
);

const indexSettings = alterations(
  "format('alter table %s %s %I', indrelid::regclass, setting, class.relname)",
  `pg_class as class join pg_index on indexrelid = class.oid cross join lateral (values
    (indisreplident, 'replica identity using index'),
    (indisclustered, 'cluster on')
  ) as flag (holds, setting)`,
  "holds",
);

const constraintIndexOptions = alterations(
  "format('alter index %s set (%s)', class.oid::regclass, array_to_string(reloptions, ', '))",
  "pg_class as class join pg_constraint on conindid = class.oid and contype in ('p', 'u', 'x')",
  "reloptions is not null",
);

const columnSettings = alterations(
  `format(
    'alter %s %s alter column %s %s', case when relkind in ('i', 'I') then 'index' else 'table only' end,
    class.oid::regclass, case when relkind in ('i', 'I') then attnum::text else quote_ident(attname) end, setting
  )`,
  `pg_class as class
  join pg_attribute on attrelid = class.oid and attnum > 0 and not attisdropped
  join pg_type on pg_type.oid = atttypid
  cross join lateral (values
    (case when coalesce(attstattarget, -1) >= 0 then 'set statistics ' || attstattarget end),
    -- Some builds of Postgres keep options of their own here, which cannot be set.
    ((select 'set (' || string_agg(option, ', ') || ')' from unnest(attoptions) as option where option like 'n_distinct%')),
    (case when relkind in ('r', 'p', 'm') and attstorage <> typstorage then
      'set storage ' || case attstorage when 'p' then 'plain' when 'e' then 'external' when 'm' then 'main' else 'extended' end
    end)
  ) as change (setting)`,
  "relkind in ('r', 'p', 'm', 'f', 'i', 'I') and setting is not null",
);

const refreshes = alterations(
  "format('refresh materialized view %s', class.oid::regclass)",
  "pg_class as class",
  "relkind = 'm' and relispopulated",
);

/** Returns the clause for the firing of a trigger or rule; null for the default. */
function firing(enabled: string): string {
  return `case ${enabled} when 'D' then 'disable' when 'R' then 'enable replica' when 'A' then 'enable always' end`;
}

/** The objects are created in the order of their dependencies. */
export function relationObjects(version: number): string[] {
  return [tables(version), sequences, views];
}

/** The objects that are created after the rows of the tables, in the order of their dependencies. */
export const tableParts = [indexes, constraints, defaults, rules, triggers, statistics];

/** The statements complete the tables before they have rows. */
export const partitionStatements = [attachedPartitions, typedTables, inheritedNotNulls];

/** The statements run in this order when all objects exist and the tables have their rows. */
export const relationStatements = [
  attachedIndexes,
  foreignKeys,
  unvalidatedNotNulls,
  ownedSequences,
  constraintIndexOptions,
  indexSettings,
  columnSettings,
];

export const securityStatements = [tableSettings, policies];
export const refreshStatements = [refreshes];
export const eventTriggerStatements = [eventTriggers];
