/** The first number of a user's object; objects with lower numbers come with every database. */
const FIRST_OBJECT_ID = 16384;
/** The schema `public`, which comes with every database, and is treated as one of the user's. */
export const SCHEMA_PUBLIC = 2200;

/** The use of definitions: an archive creates a database with them, others read and compare them. */
export type DefinitionForm = {
  /** The version of Postgres, such as 180004. */
  readonly version: number;
  readonly isArchive: boolean;
};

/** A query of the objects of one kind. The properties are SQL, for a connection whose search path is empty. */
export type Definition = {
  readonly catalog: string;
  readonly oid: string;
  /** The statement that creates the object. */
  readonly statement: string;
  /** The text that is compared, if it is not the statement. */
  readonly text?: string;
  readonly from: string;
  readonly where: string;
  /** For an object that is compared as a part of another one: the other one, the name of the part, and the statement that removes it. */
  readonly part?: { readonly of: string; readonly name: string; readonly remove: string };
  /** An expression over `statement` that replaces another object of this name; without it, that one is removed first. */
  readonly replacement?: string;
};

/** A row of a query for comparisons. */
export type SchemaRow = {
  /** `table public.notes`. */
  readonly object: string;
  /** `index notes_text of table public.notes`. */
  readonly name: string;
  /** The text that is compared: the statement, or a line of a table's definition. */
  readonly text: string;
  readonly statement: string;
  readonly remove: string;
  readonly replacement: string | null;
  /** Only for columns of tables. */
  readonly column?: TableColumn | null;
  /** The name of another object that it is a part of, too: it is compared if both databases have that. */
  readonly otherObject?: string;
};

export type TableColumn = {
  /** The quoted name. */
  readonly name: string;
  readonly typeName: string;
  readonly collation: string | null;
  readonly compression: string | null;
  readonly fallback: string | null;
  readonly notNull: boolean;
  /** `generated always as identity`. */
  readonly identity: string | null;
  readonly isGenerated: boolean;
};

export function toArchiveQuery({ catalog, oid, statement, from, where }: Definition): string {
  return `
    select '${catalog}'::regclass::oid as catalog, ${oid} as oid, ${archivedName(catalog, oid)} as object,
      ${statement} as statement
    from ${from}
    where ${where}`;
}

/** Keeps Postgres from moving the expressions of a subquery to each place that names them, where it computes them again. */
export const ONCE = "offset 0";

/** Returns a query of `SchemaRow`, without the service's own record of migrations. */
export function toComparisonQuery(definition: Definition): string {
  const { catalog, oid, statement, text, from, where, part, replacement } = definition;
  return `
    select object, coalesce(part || ' of ', '') || object as name, coalesce(text, statement) as text, statement,
      coalesce(remove, 'drop ' || object) as remove, ${replacement ?? "null"} as replacement
    from (
      select ${part?.of ?? objectLabel(catalog, oid)} as object, ${statement} as statement, ${text ?? "null"} as text,
        ${part?.name ?? "null"} as part, ${part?.remove ?? "null"} as remove
      from ${from}
      where ${where}
      ${ONCE}
    ) as definition`;
}

/** Returns the definition of objects, without those that are created with another one, such as the functions of a range type. */
export function defineObjects(
  catalog: string,
  oid: string,
  { where = "true", ...rest }: Omit<Definition, "catalog" | "oid" | "where"> & { readonly where?: string },
): Definition {
  return {
    catalog,
    oid,
    ...rest,
    where: `${isOwn(catalog, oid)} and (${where}) and not exists (
      select from pg_depend as part
      where part.classid = '${catalog}'::regclass and part.objid = ${oid} and part.deptype = 'i'
        -- A partitioned table depends on its own columns.
        and (part.refclassid, part.refobjid) <> (part.classid, part.objid)
    )`,
  };
}

/** Returns the definition of a part of a relation, whose catalog row has no number. */
export function defineAlterations(
  { where, ...rest }: Omit<Definition, "catalog" | "oid">,
  isIncluded = IS_OWN_CLASS,
): Definition {
  return { catalog: "pg_class", oid: "class.oid", ...rest, where: `${isIncluded} and ${IS_PERMANENT} and (${where})` };
}

/** Returns SQL that is true if the database came without the object. */
export function isUsers(oid: string): string {
  return `${oid} >= ${FIRST_OBJECT_ID}`;
}

/** Returns SQL that is true if an object was created by neither the database's creation nor an extension. */
export function isOwn(catalog: string, oid: string): string {
  return `${isUsers(oid)} and not ${isExtensionMember(`'${catalog}'::regclass`, oid)}`;
}

export function isExtensionMember(catalog: string, oid: string): string {
  return `exists (
    select from pg_depend as membership
    where membership.classid = ${catalog} and membership.objid = ${oid} and membership.deptype = 'e'
  )`;
}

/**
 * Returns SQL that is true if a relation belongs neither to an extension, which also creates the parts of its relations, nor
 * to a session.
 */
export function isOwnRelation(oid: string): string {
  return `not (${isExtensionMember("'pg_class'::regclass", oid)} or exists (
    select from pg_class as temporary where temporary.oid = ${oid} and temporary.relpersistence = 't'
  ))`;
}

/** True if a relation is permanent and outside of the schemas that Postgres maintains. */
export const IS_PERMANENT = `class.relpersistence <> 't' and class.relnamespace <> 'pg_toast'::regnamespace`;

/** Excludes the relations of an extension, which sets their properties itself. */
const IS_OWN_CLASS = `${isOwn("pg_class", "class.oid")} and not exists (
  select from pg_index as part where part.indexrelid = class.oid and not (${isOwnRelation("part.indrelid")})
)`;

/** Returns SQL for the object's kind and name, as archives have had them since their first version. */
export function archivedName(catalog: string, oid: string): string {
  return `(select type || ' ' || identity from pg_identify_object('${catalog}'::regclass, ${oid}, 0))`;
}

/** Returns SQL for the object's kind and name, such as `table public.notes`, as they are written after `drop`. */
export function objectLabel(catalog: string, oid: string): string {
  return labelOf(`'${catalog}'::regclass`, oid);
}

export function labelOf(catalog: string, oid: string): string {
  return `(
    select replace(replace(type, 'foreign-data', 'foreign data'), 'statistics object', 'statistics')
      || ' ' || replace(identity, 'pg_catalog.', '')
    from pg_identify_object(${catalog}, ${oid}, 0)
  )`;
}

/**
 * Returns SQL for a role in a statement. The role that makes the backup is written as `session_user`, so that the restoring
 * role, whatever its name, owns the objects of that role.
 */
export function roleName(oid: string, { isArchive }: Pick<DefinitionForm, "isArchive">): string {
  return `case when ${oid} = 0 then 'public' ${isArchive ? `when ${oid} = session_user::regrole then 'session_user'` : ""}
    else quote_ident(pg_get_userbyid(${oid})) end`;
}

/** Returns ` (name 'value', …)` from an array of options of foreign data; null without options. */
export function foreignOptions(options: string): string {
  return `(
    select ' options (' || string_agg(format('%I %L', option_name, option_value), ', ') || ')'
    from pg_options_to_table(${options}) having count(*) > 0
  )`;
}

/** Returns SQL for what the catalog has as a part of a table, and `drop` names with it: triggers, policies and rules. */
export function partOfTable(kind: string, name: string, table: string): NonNullable<Definition["part"]> {
  return {
    of: objectLabel("pg_class", table),
    name: `'${kind} ' || quote_ident(${name})`,
    remove: `format('drop ${kind} %I on %s', ${name}, ${table}::regclass)`,
  };
}

/** Returns SQL for a constraint as in the definition of its table or domain. */
export function constraintLine(oid: string): string {
  return `format('constraint %I %s', conname, pg_get_constraintdef(${oid}))`;
}

/** Returns the qualified name of a collation or operator. */
export function nameInSchema(catalog: "pg_collation" | "pg_operator", oid: string): string {
  const [prefix, name] = catalog === "pg_collation" ? ["coll", "%I"] : ["opr", "%s"];
  return `(
    select format('%I.${name}', nspname, ${prefix}name)
    from ${catalog} as named join pg_namespace on pg_namespace.oid = ${prefix}namespace where named.oid = ${oid}
  )`;
}

/** Returns a clause with a collation; null if it is the one of the type. */
export function collationClause(collation: string, type: string): string {
  return `case when ${collation} is distinct from (select base.typcollation from pg_type as base where base.oid = ${type})
    then ' collate ' || ${nameInSchema("pg_collation", collation)} end`;
}

/** Returns an option of a definition whose value is a function; null if it has none. */
export function functionOption(option: string, column: string): string {
  return `case when ${column} <> 0 then ', ${option} = ' || ${column}::oid::regproc end`;
}

/** Returns the clause for the firing of a trigger or rule; null for the default. */
export function firingClause(enabled: string): string {
  return `case ${enabled} when 'D' then 'disable' when 'R' then 'enable replica' when 'A' then 'enable always' end`;
}
