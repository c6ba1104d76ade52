import type pg from "pg";
import { comments } from "../../schema-dump/definitions.ts";
import type { ArchivedMembership, ArchivedRole, ArchivedStatement } from "../archive-format.ts";
import { FIRST_OBJECT_ID, IS_PERMANENT, isOwn } from "./fragments.ts";
import { type CatalogDependency, type CatalogObject, keyOf, orderObjects, reachesObject } from "./order-objects.ts";
import {
  eventTriggerOwners,
  grantStatements,
  memberships,
  ownerStatements,
  ROLES,
  settingStatements,
} from "./privileges.ts";
import {
  eventTriggerStatements,
  partitionStatements,
  refreshStatements,
  relationObjects,
  relationStatements,
  securityStatements,
  tableParts,
} from "./relations.ts";
import { publicationStatements, typeObjects } from "./types.ts";

/** The definition of a database, for another one without objects. */
export type DatabaseSchema = {
  readonly roles: readonly ArchivedRole[];
  readonly memberships: readonly ArchivedMembership[];
  /** Create everything that rows can depend on. */
  readonly beforeRows: readonly ArchivedStatement[];
  readonly afterRows: readonly ArchivedStatement[];
};

/** Catalogs whose rows are all written, or belong to an object that is checked. */
const WRITTEN_CATALOGS = `
  'pg_amop', 'pg_amproc', 'pg_attrdef', 'pg_constraint', 'pg_default_acl', 'pg_enum', 'pg_event_trigger', 'pg_extension',
  'pg_largeobject_metadata', 'pg_policy', 'pg_publication', 'pg_publication_namespace', 'pg_publication_rel', 'pg_rewrite',
  'pg_trigger', 'pg_user_mapping'`;

const CATALOGS = `
  select class.oid::regclass::text as catalog
  from pg_class as class join pg_attribute on attrelid = class.oid and attname = 'oid'
  where relnamespace = 'pg_catalog'::regnamespace and relkind = 'r' and not relisshared
    and relname not in (${WRITTEN_CATALOGS})
  order by 1`;

const DEPENDENCIES = `
  select classid as catalog, objid as oid, refclassid as "onCatalog", refobjid as "onOid", deptype as kind
  from pg_depend where objid >= ${FIRST_OBJECT_ID}`;

const largeObjects = `
  select 'large object ' || oid as object, format('select pg_catalog.lo_create(%s)', oid) as statement
  from pg_largeobject_metadata`;

const COMMENTS = `
  select object, statement from (${comments}) as comments
  where statement <> 'comment on schema public is ''standard public schema'''`;

/** What cannot be written, besides the objects that no query above knows. */
const UNSUPPORTED = `
  select 'subscription ' || quote_ident(subname) as object
  from pg_subscription where subdbid = (select oid from pg_database where datname = current_database())
  union all
  select 'security label of ' || objtype || ' ' || objname from pg_seclabels where objtype <> 'database'
  union all
  select format('user mapping of %s for %s, whose options only a superuser may read', srvname, usename)
  from pg_user_mappings
  where umoptions is null and not (select rolsuper from pg_roles where rolname = session_user)`;

/**
 * Reads the definition in the transaction of the client, whose search path is empty. Throws if the database has an object
 * that cannot be written.
 */
export async function readSchema(client: pg.ClientBase): Promise<DatabaseSchema> {
  const { rows: servers } = await client.query<{ version: number }>(
    "select current_setting('server_version_num')::int as version",
  );
  const { version } = servers[0]!;
  const created: CatalogObject[] = [];
  const queries = [...typeObjects, ...relationObjects(version), ...tableParts];
  for (const [rank, query] of queries.entries()) {
    const { rows } = await client.query<Omit<CatalogObject, "rank">>(query);
    created.push(...rows.map((row) => ({ ...row, rank })));
  }
  const { rows: dependencies } = await client.query<CatalogDependency>(DEPENDENCIES);
  await requireAllWritten(client, created, dependencies);
  // Rows are inserted faster without indexes and triggers, and can refer to each other in any order.
  const isFirst = ({ rank }: CatalogObject) => rank < queries.length - tableParts.length;
  const { first, rest } = orderObjects(created, dependencies, isFirst);
  return {
    roles: (await client.query<ArchivedRole>(ROLES)).rows,
    memberships: (await client.query<ArchivedMembership>(memberships(version))).rows,
    beforeRows: [...first, ...(await statementsOf(client, [...partitionStatements, largeObjects]))],
    afterRows: [...rest, ...(await statementsOf(client, closingStatements(version)))],
  };
}

function closingStatements(version: number): string[] {
  return [
    ...relationStatements,
    ...publicationStatements(version),
    ...securityStatements,
    `${COMMENTS} and object not like 'event trigger %'`,
    ...ownerStatements,
    ...grantStatements,
    ...refreshStatements,
    ...settingStatements,
    ...eventTriggerStatements,
    ...eventTriggerOwners,
    `${COMMENTS} and object like 'event trigger %'`,
  ];
}

async function statementsOf(client: pg.ClientBase, queries: readonly string[]): Promise<ArchivedStatement[]> {
  const statements: ArchivedStatement[] = [];
  for (const query of queries) {
    const { rows } = await client.query<ArchivedStatement>(
      `select object, statement from (${query}) as statements order by object collate "C", statement collate "C"`,
    );
    statements.push(...rows);
  }
  return statements;
}

/** Throws if the database has objects that no query of this folder knows, such as those of later versions of Postgres. */
async function requireAllWritten(
  client: pg.ClientBase,
  created: readonly CatalogObject[],
  dependencies: readonly CatalogDependency[],
): Promise<void> {
  const { rows: catalogs } = await client.query<{ catalog: string }>(CATALOGS);
  const all = catalogs.map(
    ({ catalog }) => `
      select '${catalog}'::regclass::oid as catalog, oid, pg_describe_object('${catalog}'::regclass, oid, 0) as object,
        (pg_identify_object('${catalog}'::regclass, oid, 0)).schema as schema
      from ${catalog} as item where ${isOwn(catalog, "oid")}`,
  );
  const { rows } = await client.query<CatalogObject & { schema: string | null }>(
    `select * from (${all.join(" union all ")}) as item
     where coalesce(schema, '') !~ '^pg_(temp|toast)' and object !~ '^schema pg_'
       and not exists (
         select from pg_class as class left join pg_index on indexrelid = class.oid
         where item.catalog = 'pg_class'::regclass and class.oid = item.oid
           and (not (${IS_PERMANENT}) or relkind = 'i' and not indisvalid)
       )`,
  );
  const known = new Set(created.map(keyOf));
  const reaches = reachesObject(known, dependencies);
  const { rows: unsupported } = await client.query<{ object: string }>(UNSUPPORTED);
  const missing = [...rows.filter((object) => !reaches(keyOf(object))), ...unsupported].map(({ object }) => object);
  if (missing.length === 0) return;
  throw new Error(
    `A backup cannot contain these objects: ${missing.join("; ")}. No file was written. ` +
      "Use pg_dump for this database, of the same or a later major version than the server.",
  );
}
