import type {
  Introspection,
  PgAttribute,
  PgClass,
  PgConstraint,
  PgNamespace,
  PgProc,
  PgSmartTagsDict,
  PgType,
} from "graphile-build-pg/pg-introspection";
import { functionSignature, inputTypesOf, type ObjectHolder, quoteSqlName, sqlTypeName } from "#plugins";

/** A database object that can be left out of a schema build. */
export type SchemaPart = {
  readonly kind: "table" | "column" | "function" | "comment";
  /** The object's description, as SQL names it: `function public.bump(integer)`. */
  readonly object: string;
  /** Names by which an error message may refer to it, the most specific first. */
  readonly searchTerms: readonly string[];
  readonly fix: string;
  readonly holder: ObjectHolder | null;
  /** Removes it from the introspection. */
  readonly remove: () => void;
};

type CommentedEntity = PgNamespace | PgClass | PgAttribute | PgConstraint | PgType | PgProc;

/**
 * All parts of a schema, in an order in which none depends on a later one: tables without columns, their columns, functions, and
 * the smart tags of comments.
 */
export function listSchemaParts(introspection: Introspection, schemas: readonly string[]): SchemaPart[] {
  const { attributes, classes, constraints, namespaces, procs, types } = introspection;
  const isServed = (entity: PgClass | PgProc) => schemas.includes(entity.getNamespace()?.nspname ?? "");
  const tables = classes.filter((table) => /[rvmfp]/.test(table.relkind) && isServed(table));
  const columns = tables.flatMap((table) => table.getAttributes().filter(({ attnum }) => attnum > 0));
  const functions = procs.filter(isServed);
  const commented: readonly (readonly [string, ...CommentedEntity[]])[] = [
    ...namespaces.map((schema) => [`schema ${quoteSqlName(schema.nspname)}`, schema] as const),
    // Core also reads the comment on a composite type from its class.
    ...types.map((type) => [`type ${sqlTypeName(type)}`, type, ...compositeClasses(type)] as const),
    ...classes.filter(({ relkind }) => relkind !== "c").map((table) => [describeRelation(table), table] as const),
    ...attributes.map((column) => [describeColumn(column), column] as const),
    ...constraints.map((constraint) => [describeConstraint(constraint), constraint] as const),
    ...functions.map((proc) => [`function ${functionSignature(proc)}`, proc] as const),
  ];
  return [
    ...tables.map(tablePart),
    ...columns.map(columnPart),
    ...functions.map((proc) => functionPart(proc, introspection)),
    ...commented.flatMap(([object, ...entities]) => commentParts(object, entities)),
  ];
}

function tablePart(table: PgClass): SchemaPart {
  const object = describeRelation(table);
  const fix = `comment on ${object} is '@behavior -*';`;
  const holder = tableHolder(table);
  return { kind: "table", object, searchTerms: [table.relname], fix, holder, remove: () => hideEntity(table) };
}

function columnPart(column: PgAttribute): SchemaPart {
  const object = describeColumn(column);
  const fix = `comment on ${object} is '@behavior -*';`;
  const holder = tableHolder(column.getClass(), column.attname);
  return { kind: "column", object, searchTerms: [column.attname], fix, holder, remove: () => hideEntity(column) };
}

function functionPart(proc: PgProc, { procs }: Introspection): SchemaPart {
  const signature = functionSignature(proc);
  const types = [...inputTypesOf(proc), proc.getReturnType()].flatMap((type) => type ?? []);
  const rows = types.map((type) => type.getElemType() ?? type).filter(({ typtype }) => typtype !== "b");
  return {
    kind: "function",
    object: `function ${signature}`,
    searchTerms: [proc.proname, ...rows.map(({ typname }) => typname)],
    fix: `comment on function ${signature} is '@behavior -*';`,
    holder: holderOf(proc),
    remove: () => {
      // The array is changed in place: core holds a reference to it.
      const at = procs.indexOf(proc);
      if (at >= 0) procs.splice(at, 1);
    },
  };
}

/** Lists one part per tag value, so that a comment keeps its valid lines. */
function commentParts(object: string, entities: readonly CommentedEntity[]): SchemaPart[] {
  return Object.entries(entities[0]!.getTags()).flatMap(([tag, values]) =>
    toTagValues(values).map((value): SchemaPart => {
      const line = value === true ? `@${tag}` : `@${tag} ${value}`;
      return {
        kind: "comment",
        object: `"${line}" in the comment on ${object}`,
        searchTerms: [line, tag, ...(value === true ? [] : [value])],
        fix: `comment on ${object} is '…';  -- without that line`,
        holder: holderOf(entities[0]!),
        remove: () => {
          for (const entity of entities) changeTags(entity, (tags) => withoutTagValue(tags, tag, value));
        },
      };
    }),
  );
}

function holderOf(entity: CommentedEntity): ObjectHolder | null {
  switch (entity._type) {
    case "PgProc":
      return { kind: "function", schema: entity.getNamespace()?.nspname ?? "", name: entity.proname };
    case "PgClass":
      return tableHolder(entity);
    case "PgAttribute":
      return tableHolder(entity.getClass(), entity.attname);
    case "PgConstraint":
      return tableHolder(entity.getClass());
    default:
      return null;
  }
}

function tableHolder(table: PgClass | undefined, column?: string): ObjectHolder | null {
  const schema = table?.getNamespace()?.nspname;
  return schema === undefined
    ? null
    : { kind: "table", schema, name: table!.relname, ...(column !== undefined && { column }) };
}

function compositeClasses(type: PgType): PgClass[] {
  const found = type.getClass();
  return found?.relkind === "c" ? [found] : [];
}

function hideEntity(entity: PgClass | PgAttribute): void {
  changeTags(entity, (tags) => ({ ...tags, behavior: [...stringTagValues(tags.behavior), "-*"] }));
}

function changeTags(entity: CommentedEntity, change: (tags: PgSmartTagsDict) => PgSmartTagsDict): void {
  const { tags, description } = entity.getTagsAndDescription();
  const changed = change(tags);
  entity.getTags = () => changed;
  entity.getTagsAndDescription = () => ({ tags: changed, description });
}

function withoutTagValue(tags: PgSmartTagsDict, tag: string, value: string | true): PgSmartTagsDict {
  const { [tag]: values, ...others } = tags;
  const [first, ...more] = toTagValues(values).filter((each) => each !== value);
  if (first === undefined) return others;
  return { ...others, [tag]: more.length === 0 ? first : stringTagValues([first, ...more]) };
}

type TagValues = PgSmartTagsDict[string] | undefined;

function toTagValues(values: TagValues): (string | true)[] {
  return [values ?? []].flat();
}

function stringTagValues(values: TagValues): string[] {
  return toTagValues(values).filter((value) => typeof value === "string");
}

const RELATION_KINDS: Readonly<Record<string, string>> = { v: "view", m: "materialized view", f: "foreign table" };

function describeRelation(table: PgClass): string {
  return `${RELATION_KINDS[table.relkind] ?? "table"} ${qualifiedTableName(table)}`;
}

function describeColumn(column: PgAttribute): string {
  const table = column.getClass();
  return `column ${table ? qualifiedTableName(table) : column.attrelid}.${quoteSqlName(column.attname)}`;
}

function describeConstraint(constraint: PgConstraint): string {
  const table = constraint.getClass();
  return `constraint ${quoteSqlName(constraint.conname)}${table ? ` on ${qualifiedTableName(table)}` : ""}`;
}

function qualifiedTableName(table: PgClass): string {
  return quoteSqlName(table.getNamespace()?.nspname ?? "", table.relname);
}
