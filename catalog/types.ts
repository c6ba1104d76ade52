import { memoize } from "#runtime";
import type { CatalogQuery } from "./catalog-query.ts";
import {
  type CatalogTypes,
  type Comparability,
  type DataType,
  type DomainRepresentation,
  MEDIA_TYPE,
  maxLength,
  type OperatorSchema,
  type QualifiedName,
  type TypeAttribute,
} from "./data-types.ts";
import type { Grants } from "./privileges.ts";

const DOMAIN_REPRESENTATIONS = `
  select format_type(c.castsource, null) as source, format_type(c.casttarget, null) as target,
    c.castfunc::regproc::text as function
  from pg_cast c join pg_type s on s.oid = c.castsource join pg_type t on t.oid = c.casttarget
  where c.castcontext = 'i' and c.castmethod = 'f'
    and (s.typtype = 'd' and c.casttarget in ('json'::regtype, 'text'::regtype)
      or t.typtype = 'd' and c.castsource in ('json'::regtype, 'text'::regtype))
  order by c.oid`;

type TypeRow = QualifiedName & {
  oid: number;
  sqlName: string;
  comment: string | null;
  typtype: "b" | "c" | "d" | "e" | "m" | "p" | "r";
  isArray: boolean;
  delimiter: string;
  element: number;
  base: number;
  overSql: string | null;
  typmod: number;
  notNull: boolean;
  default: string | null;
  relation: number;
  relationKind: string | null;
  values: string[] | null;
  comparison: Comparability;
  operatorSchema: string | null;
  operatorSchemaAcl: string | null;
};
type AttributeRow = { relation: number; name: string; type: number; sqlType: string; comment: string | null };
type CheckRow = { type: number; name: string; expression: string };

type TypeRows = {
  readonly types: readonly TypeRow[];
  readonly attributes: readonly AttributeRow[];
  readonly checks: readonly CheckRow[];
};

/** $1 is the types of columns and functions, $2 the schemas whose types are listed. The result includes the types that these consist of. */
const WANTED_TYPES = `
  with recursive wanted (oid) as (
    select unnest($1::oid[])
    union
    select t.oid from pg_type t left join pg_class c on c.oid = t.typrelid
    where (t.typnamespace = any ($2) and t.typtype in ('e', 'd', 'r', 'm', 'c') and coalesce(c.relkind = 'c', true))
      or (t.typtype = 'd' and t.typname ~ '${MEDIA_TYPE}')
    union
    select part.oid
    from wanted join pg_type t on t.oid = wanted.oid
      cross join lateral (
        select t.typbasetype
        union all select t.typelem
        union all select r.rngsubtype from pg_range r where t.typtype in ('r', 'm') and t.oid in (r.rngtypid, r.rngmultitypid)
        union all
        select a.atttypid from pg_attribute a join pg_class c on c.oid = a.attrelid
        where t.typrelid <> 0 and a.attrelid = t.typrelid and a.attnum > 0 and not a.attisdropped
          and (c.relkind = 'c' or c.relnamespace <> all ($2))
      ) part (oid)
    where part.oid <> 0
  )`;

/** The comparability is that of the default operator classes of the type, or of a type that it is binary coercible to. */
const TYPE_COMPARABILITY = `
  classed as (
    select o.opcintype as oid, bool_or(m.amname = 'btree') as is_ordered,
      min(e.oprnamespace) filter (where e.oprnamespace <> 'pg_catalog'::regnamespace) as schema
    from pg_opclass o join pg_am m on m.oid = o.opcmethod
      left join pg_amop a on a.amopfamily = o.opcfamily and a.amoplefttype = o.opcintype and a.amoprighttype = o.opcintype
        and a.amopstrategy = case m.amname when 'btree' then 3 else 1 end
      left join pg_operator e on e.oid = a.amopopr and e.oprname = '='
    where o.opcdefault and m.amname in ('btree', 'hash')
    group by o.opcintype
  ),
  compared as (
    select known.oid, case when bool_or(known.is_ordered) then 'order' else 'equality' end as comparison,
      min(known.schema) as schema
    from (
      select oid, is_ordered, schema from classed
      union all
      select c.castsource, k.is_ordered, null from pg_cast c join classed k on k.oid = c.casttarget
      where c.castmethod = 'b' and c.castcontext = 'i'
    ) known
    group by known.oid
  )`;

const TYPES = `${WANTED_TYPES}, ${TYPE_COMPARABILITY}
  select t.oid, n.nspname as schema, t.typname as name, format_type(t.oid, null) as "sqlName", d.description as comment,
    t.typtype, t.typcategory = 'A' and t.typelem <> 0 as "isArray", t.typdelim as delimiter,
    case when t.typtype in ('r', 'm')
      then (select r.rngsubtype from pg_range r where t.oid in (r.rngtypid, r.rngmultitypid))
      else t.typelem end as element,
    t.typbasetype as base, case when t.typtype = 'd' then format_type(t.typbasetype, t.typtypmod) end as "overSql",
    t.typtypmod as typmod, t.typnotnull as "notNull", pg_get_expr(t.typdefaultbin, 0) as default,
    t.typrelid as relation, c.relkind as "relationKind",
    case when t.typtype = 'e'
      then (select array_agg(e.enumlabel::text order by e.enumsortorder) from pg_enum e where e.enumtypid = t.oid)
    end as values,
    coalesce(k.comparison, 'none') as comparison, o.nspname as "operatorSchema",
    array_to_string(coalesce(o.nspacl, acldefault('n', o.nspowner)), E'\\n') as "operatorSchemaAcl"
  from pg_type t join wanted using (oid) join pg_namespace n on n.oid = t.typnamespace
    left join compared k on k.oid = t.oid
    left join pg_namespace o on o.oid = k.schema
    left join pg_class c on c.oid = t.typrelid
    left join pg_description d on d.classoid = 'pg_type'::regclass and d.objoid = t.oid and d.objsubid = 0
  order by t.oid`;

/** Attributes of composite types, and of tables that are not in the catalogue. */
const ATTRIBUTES = `
  select a.attrelid as relation, a.attname as name, a.atttypid as type,
    format_type(a.atttypid, a.atttypmod) as "sqlType", d.description as comment
  from pg_attribute a
    left join pg_description d
      on d.classoid = 'pg_class'::regclass and d.objoid = a.attrelid and d.objsubid = a.attnum
  where a.attrelid = any ($1) and a.attnum > 0 and not a.attisdropped
  order by a.attrelid, a.attnum`;

const CHECKS = `
  select k.contypid as type, k.conname as name, pg_get_expr(k.conbin, 0) as expression
  from pg_constraint k
  where k.contypid = any ($1) and k.contype = 'c'
  order by k.contypid, k.conname`;

type TypeSelection = {
  readonly used: Iterable<number>;
  readonly schemas: readonly number[];
  /** The tables in the catalogue, whose columns are read separately. */
  readonly tables: ReadonlySet<number>;
};

export async function readTypes(read: CatalogQuery, { used, schemas, tables }: TypeSelection): Promise<TypeRows> {
  const types = await read<TypeRow>("types", TYPES, [[...new Set(used)], schemas]);
  const relations = types.map(({ relation }) => relation).filter((oid) => oid !== 0 && !tables.has(oid));
  const domains = types.filter(({ typtype }) => typtype === "d").map(({ oid }) => oid);
  return {
    types,
    attributes: relations.length > 0 ? await read("attributes", ATTRIBUTES, [relations]) : [],
    checks: domains.length > 0 ? await read("domainChecks", CHECKS, [domains]) : [],
  };
}

export function toTypes(
  { types, attributes, checks }: TypeRows,
  grantsOf: (acl: string | null) => Grants,
): CatalogTypes {
  const rows = new Map(types.map((row) => [row.oid, row]));
  const checksOf = Map.groupBy(checks, ({ type }) => type);
  const attributesOf = new Map<number, Map<string, TypeAttribute>>();

  const of = memoize((oid: number): DataType => toDataType(rows.get(oid)!, sources));
  const sources: TypeSources = { of, grantsOf, checksOf: (oid) => checksOf.get(oid) ?? [], attributesOf };

  const all = types.map(({ oid }) => of(oid));
  for (const { relation, name, type, sqlType, comment } of attributes) {
    attributesOf.get(relation)!.set(name, { name, type: of(type), sqlType, comment });
  }

  return {
    of,
    all,
    fillRowType(relation, columns) {
      const own = attributesOf.get(relation);
      if (own) for (const [name, column] of columns) own.set(name, column);
    },
  };
}

type TypeSources = {
  readonly of: (oid: number) => DataType;
  readonly grantsOf: (acl: string | null) => Grants;
  readonly checksOf: (oid: number) => TypeRows["checks"];
  /** The attributes of composite types, by the relation that describes them. */
  readonly attributesOf: Map<number, Map<string, TypeAttribute>>;
};

function toDataType(row: TypeRow, { of, grantsOf, checksOf, attributesOf }: TypeSources): DataType {
  const { oid, schema, name, sqlName, comment } = row;
  const named = { oid, schema, name, sqlName, comment };
  if (row.isArray) return { ...named, kind: "array", element: of(row.element), delimiter: row.delimiter };
  switch (row.typtype) {
    case "b":
      return { ...named, kind: "base", comparison: row.comparison, operatorSchema: toOperatorSchema(row, grantsOf) };
    case "p":
      return { ...named, kind: "pseudo", comparison: "none", operatorSchema: null };
    case "e":
      return { ...named, kind: "enum", values: row.values ?? [] };
    case "r":
      return { ...named, kind: "range", element: of(row.element) };
    case "m":
      return { ...named, kind: "multirange", element: of(row.element) };
    case "d":
      return {
        ...named,
        kind: "domain",
        over: of(row.base),
        overSql: row.overSql!,
        maxLength: maxLength(of(row.base), row.typmod),
        notNull: row.notNull,
        default: row.default,
        checks: checksOf(oid).map((check) => ({ name: check.name, expression: check.expression })),
      };
    case "c": {
      const attributes = new Map<string, TypeAttribute>();
      attributesOf.set(row.relation, attributes);
      const table = row.relationKind === "c" ? null : { schema, name };
      return { ...named, kind: "composite", table, attributes };
    }
  }
}

function toOperatorSchema(
  { operatorSchema: name, operatorSchemaAcl }: TypeRow,
  grantsOf: TypeSources["grantsOf"],
): OperatorSchema | null {
  return name === null ? null : { name, grants: grantsOf(operatorSchemaAcl) };
}

export function readRepresentations(read: CatalogQuery): Promise<DomainRepresentation[]> {
  return read("representations", DOMAIN_REPRESENTATIONS);
}
