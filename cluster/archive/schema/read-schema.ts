import type pg from "pg";
import { archiveQueries, comments, IS_PERMANENT, isOwn, isOwnRelation, isUsers } from "#catalog/definitions";
import type { ArchivedMembership, ArchivedRole, ArchivedStatement } from "../content/archive-format.ts";
import {
  eventTriggerOwners,
  grantStatements,
  memberships,
  ownerStatements,
  ROLES,
  settingStatements,
} from "./privileges.ts";

/** The definition of a database, to create it in an empty one. */
type DatabaseSchema = {
  readonly roles: readonly ArchivedRole[];
  readonly memberships: readonly ArchivedMembership[];
  /** The statements that create all objects that rows can depend on: they run before the rows are written. */
  readonly beforeRows: readonly ArchivedStatement[];
  readonly afterRows: readonly ArchivedStatement[];
};

/** The catalogs whose rows an archive contains completely, or whose rows belong to an object of another catalog that is checked. */
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

/**
 * The dependencies without those of foreign keys and their triggers: the keys are created after all other objects, and are
 * parts of several tables.
 */
const DEPENDENCIES = `
  select classid as catalog, objid as oid, refclassid as "onCatalog", refobjid as "onOid", deptype as kind
  from pg_depend
  left join pg_constraint on classid = 'pg_constraint'::regclass and objid = pg_constraint.oid
  left join pg_trigger on classid = 'pg_trigger'::regclass and objid = pg_trigger.oid
  where ${isUsers("objid")} and contype is distinct from 'f' and tgisinternal is not true`;

const largeObjects = `
  select 'large object ' || oid as object, format('select pg_catalog.lo_create(%s)', oid) as statement
  from pg_largeobject_metadata`;

const COMMENTS = `
  select object, statement from (${comments}) as comments
  where statement <> 'comment on schema public is ''standard public schema'''`;

/** The objects that cannot be written, besides those that no query above knows. */
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
  const queries = archiveQueries(version);
  for (const [rank, query] of [...queries.objects, ...queries.objectsAfterRows].entries()) {
    const { rows } = await client.query<Omit<CatalogObject, "rank">>(query);
    created.push(...rows.map((row) => ({ ...row, rank })));
  }
  const { rows: dependencies } = await client.query<CatalogDependency>(DEPENDENCIES);
  await requireAllWritten(client, created, dependencies);
  // Rows are inserted faster without indexes and triggers, and can refer to each other in any order.
  const isFirst = ({ rank }: CatalogObject) => rank < queries.objects.length;
  const { first, rest } = orderObjects(created, dependencies, isFirst);
  return {
    roles: (await client.query<ArchivedRole>(ROLES)).rows,
    memberships: (await client.query<ArchivedMembership>(memberships(version))).rows,
    beforeRows: [...first, ...(await statementsOf(client, [...queries.beforeRows, largeObjects]))],
    afterRows: [...rest, ...(await closingStatements(client, queries, [...first, ...rest]))],
  };
}

async function closingStatements(
  client: pg.ClientBase,
  { afterRows, refreshes, eventTriggers }: ReturnType<typeof archiveQueries>,
  created: readonly ArchivedStatement[],
): Promise<ArchivedStatement[]> {
  const definitions = [
    ...afterRows,
    `${COMMENTS} and object not like 'event trigger %'`,
    ...ownerStatements,
    ...grantStatements,
  ];
  const places = new Map(created.map(({ object }, place) => [object, place]));
  const placeOf = ({ object }: ArchivedStatement) => places.get(object) ?? created.length;
  const views = await statementsOf(client, refreshes);
  const settings = [
    ...settingStatements,
    ...eventTriggers,
    ...eventTriggerOwners,
    `${COMMENTS} and object like 'event trigger %'`,
  ];
  return [
    ...(await statementsOf(client, definitions)),
    // A materialized view over another one is filled after that, as it was created after it.
    ...views.toSorted((one, other) => placeOf(one) - placeOf(other)),
    ...(await statementsOf(client, settings)),
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

/** Throws if the database has objects that no query knows, such as those of later versions of Postgres. */
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
           and (not (${IS_PERMANENT}) or relkind = 'i' and not indisvalid or not (${isOwnRelation("indrelid")}))
       )
       and not exists (
         select from pg_statistic_ext as statistics
         where item.catalog = 'pg_statistic_ext'::regclass and statistics.oid = item.oid and not (${isOwnRelation("stxrelid")})
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

/** The identity of an object: its system catalogue and its number there. */
type ObjectId = { readonly catalog: number; readonly oid: number };

type CatalogObject = ObjectId &
  ArchivedStatement & {
    /** The rank; independent objects of a lower rank come first. */
    readonly rank: number;
  };

/** A row of pg_depend. */
type CatalogDependency = ObjectId & {
  readonly onCatalog: number;
  readonly onOid: number;
  readonly kind: string;
};

/**
 * The kinds of dependencies that make an object a part of another one: internal, partition, extension. The index of a key is
 * primarily a part of that key.
 */
const PART_KINDS = ["i", "P", "S", "e"];

function keyOf({ catalog, oid }: ObjectId): string {
  return `${catalog}/${oid}`;
}

function targetOf({ onCatalog, onOid }: CatalogDependency): string {
  return `${onCatalog}/${onOid}`;
}

/** True if an object is a known one or a part of one. */
function reachesObject(
  known: ReadonlySet<string>,
  dependencies: readonly CatalogDependency[],
): (key: string) => boolean {
  const find = makeFindObject(known, dependencies);
  return (key) => find(key) !== null;
}

/** Finds the known object that an object is a part of: the table of a row type, the view of its rule, the constraint of its index. */
function makeFindObject(known: ReadonlySet<string>, dependencies: readonly CatalogDependency[]) {
  const wholes = Map.groupBy(
    PART_KINDS.flatMap((partKind) => dependencies.filter(({ kind }) => kind === partKind)),
    keyOf,
  );
  return function find(key: string, path: readonly string[] = []): string | null {
    if (known.has(key)) return key;
    if (path.includes(key)) return null;
    for (const dependency of wholes.get(key) ?? []) {
      const found = find(targetOf(dependency), [...path, key]);
      if (found !== null) return found;
    }
    return null;
  };
}

type OrderedStatements = { readonly first: ArchivedStatement[]; readonly rest: ArchivedStatement[] };

/**
 * Orders objects so that each comes after those that it depends on: first the wanted ones with their dependencies, then the
 * others. The order does not depend on the numbers of the objects, which differ in a copy.
 */
function orderObjects(
  objects: readonly CatalogObject[],
  dependencies: readonly CatalogDependency[],
  isFirst: (object: CatalogObject) => boolean,
): OrderedStatements {
  const byKey = new Map(objects.map((object) => [keyOf(object), object]));
  const needs = neededObjects(byKey, dependencies);
  const sorted = [...objects].sort(compareObjects);
  const done = new Set<CatalogObject>();
  let ordered: ArchivedStatement[] = [];
  const visit = (object: CatalogObject, path: readonly CatalogObject[]) => {
    if (done.has(object)) return;
    if (path.includes(object)) throw new Error(cycleMessage([...path.slice(path.indexOf(object)), object]));
    for (const needed of needs.get(object) ?? []) visit(needed, [...path, object]);
    done.add(object);
    ordered.push({ object: object.object, statement: object.statement });
  };
  for (const object of sorted.filter(isFirst)) visit(object, []);
  const first = ordered;
  ordered = [];
  for (const object of sorted) visit(object, []);
  return { first, rest: ordered };
}

function neededObjects(
  byKey: ReadonlyMap<string, CatalogObject>,
  dependencies: readonly CatalogDependency[],
): ReadonlyMap<CatalogObject, readonly CatalogObject[]> {
  const find = makeFindObject(new Set(byKey.keys()), dependencies);
  const needs = new Map<CatalogObject, Set<CatalogObject>>();
  for (const dependency of dependencies) {
    const [from, to] = [find(keyOf(dependency)), find(targetOf(dependency))];
    if (from === null || to === null || from === to) continue;
    const [object, needed] = [byKey.get(from)!, byKey.get(to)!];
    // A sequence that belongs to a column is created before the table, and then assigned to it.
    if (dependency.kind === "a" && object.object.startsWith("sequence ")) continue;
    needs.set(object, (needs.get(object) ?? new Set()).add(needed));
  }
  return new Map([...needs].map(([object, needed]) => [object, [...needed].sort(compareObjects)]));
}

function compareObjects(one: CatalogObject, other: CatalogObject): number {
  return one.rank - other.rank || (one.object < other.object ? -1 : one.object > other.object ? 1 : 0);
}

function cycleMessage(cycle: readonly CatalogObject[]): string {
  return `A backup cannot contain these objects, because each needs the next one to exist: ${cycle.map(({ object }) => object).join(", ")}. No file was written.`;
}
