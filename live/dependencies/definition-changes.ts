import { readDistributedTables } from "#catalog";
import type { AsOwner } from "#postgres/database";
import type { QueryDependencies } from "./query-dependencies.ts";

/** A relation or function, and a mark that differs after each change of its definition. */
type Definition = {
  readonly kind: "relation" | "function";
  readonly oid: number;
  readonly name: string;
  readonly mark: string;
};

/** `others`: a mark of all definitions that many queries may depend on, such as types, operators, schemas and roles. */
type Definitions = { readonly others: string; readonly objects: ReadonlyMap<string, Definition> };

const CLASS = (name: string) => `'pg_catalog.${name}'::pg_catalog.regclass`;

// The rows of pg_class and of roles are compared by content, because truncate, refresh and changes of passwords rewrite them.
const DEFINITIONS = `
  with namespace as (
    select oid from pg_catalog.pg_namespace where nspname !~ '^pg_' and nspname <> 'information_schema'
  ), described (class, object, mark) as (
    select classoid, objoid, pg_catalog.hash_record_extended(row(objsubid, xmin), 1)
    from pg_catalog.pg_description where objoid >= 16384 or classoid = ${CLASS("pg_namespace")}
  ), relation as materialized (
    select c.oid, c.relname as name, c.relkind, n.nspname as schema,
      pg_catalog.hash_record_extended(row(c.relname, c.relnamespace, c.relowner, c.relkind, c.relispartition, c.relrowsecurity,
        c.relforcerowsecurity, c.relreplident, c.relacl, c.reloptions), 2) as mark
    from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
    where c.relkind in ('r', 'p', 'v', 'm', 'f', 'c') and c.relnamespace in (select oid from namespace)
  ), relation_mark (oid, mark) as (
    select oid, mark from relation
    union all select attrelid, pg_catalog.hash_record_extended(row(attnum, xmin), 3) from pg_catalog.pg_attribute where attnum > 0
    union all select adrelid, pg_catalog.hash_record_extended(row(oid, xmin), 4) from pg_catalog.pg_attrdef
    union all select indrelid, pg_catalog.hash_record_extended(row(indexrelid, xmin), 5) from pg_catalog.pg_index
    union all select polrelid, pg_catalog.hash_record_extended(row(oid, xmin), 6) from pg_catalog.pg_policy
    union all select ev_class, pg_catalog.hash_record_extended(row(oid, xmin), 7) from pg_catalog.pg_rewrite
    union all select tgrelid, pg_catalog.hash_record_extended(row(oid, xmin), 8) from pg_catalog.pg_trigger where tgtype & 64 <> 0
    union all select side.oid, pg_catalog.hash_record_extended(row(side.number, c.oid, c.xmin, d.mark), 9)
      from pg_catalog.pg_constraint c left join described d on d.class = ${CLASS("pg_constraint")} and d.object = c.oid
        cross join lateral (values (1, c.conrelid), (2, c.confrelid)) as side (number, oid)
    union all select side.oid, pg_catalog.hash_record_extended(row(i.inhrelid, i.inhparent, i.xmin), 10)
      from pg_catalog.pg_inherits i cross join lateral (values (i.inhrelid), (i.inhparent)) as side (oid)
    union all select object, mark from described where class = ${CLASS("pg_class")}
    union all select r.oid, pg_catalog.hashtextextended(p::pg_catalog.text, 11)
      from pg_catalog.pg_publication_tables p join relation r on r.schema = p.schemaname and r.name = p.tablename
  ), other_mark (mark) as (
    select pg_catalog.hash_record_extended(row(oid, xmin), 12) from pg_catalog.pg_namespace where oid in (select oid from namespace)
    -- Each table has a type, and a type of its arrays.
    union all select pg_catalog.hash_record_extended(row(t.oid, t.xmin), 13)
      from pg_catalog.pg_type t left join pg_catalog.pg_type element on element.oid = t.typelem and element.typarray = t.oid
        left join pg_catalog.pg_class c on c.oid = coalesce(element.typrelid, t.typrelid)
      where t.typnamespace in (select oid from namespace) and (c.oid is null or c.relkind = 'c')
    union all select m.mark from relation r join relation_mark m on m.oid = r.oid where r.relkind = 'c'
    union all select pg_catalog.hash_record_extended(row(oid, xmin), 14) from pg_catalog.pg_constraint where contypid <> 0
    union all select pg_catalog.hash_record_extended(row(oid, xmin), 15) from pg_catalog.pg_enum
    union all select pg_catalog.hash_record_extended(row(rngtypid, xmin), 16) from pg_catalog.pg_range
    union all select pg_catalog.hash_record_extended(row(oid, xmin), 17) from pg_catalog.pg_cast
    union all select pg_catalog.hash_record_extended(row(oid, xmin), 18) from pg_catalog.pg_operator where oid >= 16384
    union all select pg_catalog.hash_record_extended(row(oid, xmin), 19) from pg_catalog.pg_opclass where oid >= 16384
    union all select pg_catalog.hash_record_extended(row(oid, xmin), 20) from pg_catalog.pg_amop where oid >= 16384
    union all select pg_catalog.hash_record_extended(row(oid, xmin), 21) from pg_catalog.pg_amproc where oid >= 16384
    union all select pg_catalog.hash_record_extended(row(oid, xmin), 22) from pg_catalog.pg_collation where oid >= 16384
    union all select pg_catalog.hash_record_extended(row(oid, xmin), 31) from pg_catalog.pg_ts_config where oid >= 16384
    union all select pg_catalog.hash_record_extended(row(oid, xmin), 32) from pg_catalog.pg_ts_dict where oid >= 16384
    union all select pg_catalog.hash_record_extended(row(mapcfg, maptokentype, mapseqno, xmin), 33) from pg_catalog.pg_ts_config_map
    union all select pg_catalog.hash_record_extended(row(oid, xmin), 23) from pg_catalog.pg_language
    union all select pg_catalog.hash_record_extended(row(oid, xmin), 24) from pg_catalog.pg_extension
    union all select pg_catalog.hash_record_extended(row(oid, xmin), 25) from pg_catalog.pg_publication
    union all select pg_catalog.hash_record_extended(row(class, object, mark), 26) from described
      where class not in (${CLASS("pg_class")}, ${CLASS("pg_proc")}, ${CLASS("pg_constraint")})
    union all select pg_catalog.hash_record_extended(row(oid, rolname, rolsuper, rolinherit, rolcanlogin, rolbypassrls), 27)
      from pg_catalog.pg_roles
    union all select pg_catalog.hash_record_extended(row(roleid, member, grantor, xmin), 28) from pg_catalog.pg_auth_members
    union all select pg_catalog.hash_record_extended(row(s.setdatabase, s.setrole, s.xmin), 29)
      from pg_catalog.pg_db_role_setting s left join pg_catalog.pg_database d on d.oid = s.setdatabase
      where s.setdatabase = 0 or d.datname = pg_catalog.current_database()
    union all select pg_catalog.hash_record_extended(row(d.oid, d.datname, d.datdba, c.xmin), 30)
      from pg_catalog.pg_database d left join pg_catalog.pg_shdescription c on c.objoid = d.oid
      where d.datname = pg_catalog.current_database()
  )
  select 'relation' as kind, r.oid::pg_catalog.int8::pg_catalog.float8 as oid, r.name::pg_catalog.text,
    pg_catalog.concat(pg_catalog.count(*), ' ', pg_catalog.bit_xor(m.mark)) as mark
  from relation r join relation_mark m on m.oid = r.oid where r.relkind <> 'c' group by r.oid, r.name
  union all
  select 'function', p.oid::pg_catalog.int8::pg_catalog.float8, p.proname::pg_catalog.text, pg_catalog.concat(p.xmin, ' ', d.mark)
  from pg_catalog.pg_proc p left join described d on d.class = ${CLASS("pg_proc")} and d.object = p.oid
  where p.pronamespace in (select oid from namespace)
  union all
  select 'other', 0, '', pg_catalog.concat(pg_catalog.count(*), ' ', pg_catalog.bit_xor(mark)) from other_mark`;

type DefinitionRow = {
  readonly kind: Definition["kind"] | "other";
  readonly oid: number;
  readonly name: string;
  readonly mark: string;
};

async function readDefinitions(asOwner: AsOwner): Promise<Definitions> {
  const { rows, distributed } = await asOwner(async (client) => ({
    distributed: await readDistributedTables(async (query) => (await client.query(query)).rows),
    rows: (await client.query<DefinitionRow>(DEFINITIONS)).rows,
  }));
  const others = rows.filter(({ kind }) => kind === "other").map(({ mark }) => mark);
  const objects = rows.filter((row): row is DefinitionRow & Definition => row.kind !== "other");
  return {
    others: JSON.stringify([others, distributed.map(({ oid }) => oid).sort()]),
    objects: new Map(objects.map((object) => [`${object.kind} ${object.oid}`, object])),
  };
}

/** The part of a query's dependencies that a change of definitions is compared with. */
type ComparedDependencies = Pick<QueryDependencies, "relations" | "deciding" | "obstacles" | "texts">;

/** The definitions that have changed since they were read before. */
export type DefinitionChanges = { affect(dependencies: ComparedDependencies): boolean };

export const ALL_CHANGED: DefinitionChanges = { affect: () => true };

/** Postgres shortens longer names, so a text may have more of a name than this. */
const LONGEST_NAME = 62;
/** Names with escapes. */
const HAS_ESCAPED_NAMES = /\bu&"/i;

/** Finds what has changed, from one reading of the definitions to the next. */
export class DefinitionWatch {
  readonly #asOwner: AsOwner;
  #last: Promise<Definitions> | null = null;

  constructor(asOwner: AsOwner) {
    this.#asOwner = asOwner;
  }

  /** Call before dependencies are read: later changes of what they depend on are found. */
  async begin(): Promise<void> {
    this.#last ??= this.#read();
    await this.#last;
  }

  /** The changes since the last call; all definitions if they are not known. */
  async readChanges(): Promise<DefinitionChanges> {
    try {
      const [before, after] = await Promise.all([this.#last, readDefinitions(this.#asOwner)]);
      this.#last = Promise.resolve(after);
      return before ? compare(before, after) : ALL_CHANGED;
    } catch {
      return ALL_CHANGED;
    }
  }

  #read(): Promise<Definitions> {
    const read = readDefinitions(this.#asOwner);
    read.catch(() => {
      this.#last = null;
    });
    return read;
  }
}

function compare(before: Definitions, after: Definitions): DefinitionChanges {
  if (before.others !== after.others) return ALL_CHANGED;
  const changed: Definition[] = [];
  for (const [key, object] of before.objects) if (after.objects.get(key)?.mark !== object.mark) changed.push(object);
  for (const [key, object] of after.objects) if (before.objects.get(key)?.mark !== object.mark) changed.push(object);
  const names = new Set(changed.map(({ name }) => name.toLowerCase()));
  if (names.values().some((name) => name.includes('"') || Buffer.byteLength(name) > LONGEST_NAME)) return ALL_CHANGED;
  const oidsOf = (wanted: Definition["kind"]) =>
    new Set(changed.flatMap(({ kind, oid }) => (kind === wanted ? oid : [])));
  const [relations, functions] = [oidsOf("relation"), oidsOf("function")];
  const named = new RegExp(`(?<![\\w$])(?:${[...names].map((name) => RegExp.escape(name)).join("|")})(?![\\w$])`);
  return {
    affect: ({ relations: read, deciding, obstacles, texts }) =>
      changed.length > 0 &&
      (obstacles.length > 0 ||
        read.some(({ oid }) => relations.has(oid)) ||
        deciding.relations.some((oid) => relations.has(oid)) ||
        deciding.functions.some((oid) => functions.has(oid)) ||
        // Names in texts are looked up anew: a new table or function may be found before the one that was meant.
        texts.some((text) => HAS_ESCAPED_NAMES.test(text) || named.test(text.toLowerCase()))),
  };
}
