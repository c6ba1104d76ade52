import type {
  Introspection,
  PgAttribute,
  PgClass,
  PgConstraint,
  PgNamespace,
  PgProc,
  PgSmartTagsDict,
  PgType,
} from "postgraphile/graphile-build-pg/pg-introspection";
import { inputTypesOf, signatureOf, sqlName, typeName } from "./sql-names.ts";

/** Something of the database that a schema can be built without. */
export type Part = {
  readonly kind: "table" | "column" | "function" | "comment";
  /** As the person who made it calls it: `function public.bump(integer)` */
  readonly object: string;
  /** Words by which an error may mean it, the surest first. */
  readonly words: readonly string[];
  readonly fix: string;
  /** Takes it out of what the schema is made of. */
  readonly remove: () => void;
};

type Commented = PgNamespace | PgClass | PgAttribute | PgConstraint | PgType | PgProc;

/**
 * Everything that a schema is made of, in an order in which no part needs a later one: tables without columns, their
 * columns, functions, and the lines of comments that begin with `@`.
 */
export function partsOf(introspection: Introspection, schemas: readonly string[]): Part[] {
  const { attributes, classes, constraints, namespaces, procs, types } = introspection;
  const isServed = (entity: PgClass | PgProc) => schemas.includes(entity.getNamespace()?.nspname ?? "");
  const tables = classes.filter((table) => /[rvmfp]/.test(table.relkind) && isServed(table));
  const columns = tables.flatMap((table) => table.getAttributes().filter(({ attnum }) => attnum > 0));
  const functions = procs.filter(isServed);
  const commented: readonly (readonly [string, ...Commented[]])[] = [
    ...namespaces.map((schema) => [`schema ${sqlName(schema.nspname)}`, schema] as const),
    // Core asks for the comment on a composite type at its class, too.
    ...types.map((type) => [`type ${typeName(type)}`, type, ...compositeClasses(type)] as const),
    ...classes.filter(({ relkind }) => relkind !== "c").map((table) => [relationName(table), table] as const),
    ...attributes.map((column) => [columnName(column), column] as const),
    ...constraints.map((constraint) => [constraintName(constraint), constraint] as const),
    ...functions.map((proc) => [`function ${signatureOf(proc)}`, proc] as const),
  ];
  return [
    ...tables.map(tablePart),
    ...columns.map(columnPart),
    ...functions.map((proc) => functionPart(proc, introspection)),
    ...commented.flatMap(([object, ...entities]) => commentParts(object, entities)),
  ];
}

function tablePart(table: PgClass): Part {
  const object = relationName(table);
  const fix = `comment on ${object} is '@behavior -*';`;
  return { kind: "table", object, words: [table.relname], fix, remove: () => hide(table) };
}

function columnPart(column: PgAttribute): Part {
  const object = columnName(column);
  const fix = `comment on ${object} is '@behavior -*';`;
  return { kind: "column", object, words: [column.attname], fix, remove: () => hide(column) };
}

function functionPart(proc: PgProc, { procs }: Introspection): Part {
  const signature = signatureOf(proc);
  const types = [...inputTypesOf(proc), proc.getReturnType()].flatMap((type) => type ?? []);
  const rows = types.map((type) => type.getElemType() ?? type).filter(({ typtype }) => typtype !== "b");
  return {
    kind: "function",
    object: `function ${signature}`,
    words: [proc.proname, ...rows.map(({ typname }) => typname)],
    fix: `comment on function ${signature} is '@behavior -*';`,
    remove: () => {
      // In place: core holds this very array.
      const at = procs.indexOf(proc);
      if (at >= 0) procs.splice(at, 1);
    },
  };
}

/** Each line is one, so that a comment keeps those that are in order. */
function commentParts(object: string, entities: readonly Commented[]): Part[] {
  return Object.entries(entities[0]!.getTags()).flatMap(([tag, values]) =>
    valuesOf(values).map((value): Part => {
      const line = value === true ? `@${tag}` : `@${tag} ${value}`;
      return {
        kind: "comment",
        object: `"${line}" in the comment on ${object}`,
        words: [line, tag, ...(value === true ? [] : [value])],
        fix: `comment on ${object} is '…';  -- without that line`,
        remove: () => {
          for (const entity of entities) retag(entity, (tags) => without(tags, tag, value));
        },
      };
    }),
  );
}

function compositeClasses(type: PgType): PgClass[] {
  const found = type.getClass();
  return found?.relkind === "c" ? [found] : [];
}

function hide(entity: PgClass | PgAttribute): void {
  retag(entity, (tags) => ({ ...tags, behavior: [...strings(tags.behavior), "-*"] }));
}

function retag(entity: Commented, change: (tags: PgSmartTagsDict) => PgSmartTagsDict): void {
  const { tags, description } = entity.getTagsAndDescription();
  const changed = change(tags);
  entity.getTags = () => changed;
  entity.getTagsAndDescription = () => ({ tags: changed, description });
}

function without(tags: PgSmartTagsDict, tag: string, value: string | true): PgSmartTagsDict {
  const { [tag]: values, ...others } = tags;
  const [first, ...more] = valuesOf(values).filter((each) => each !== value);
  if (first === undefined) return others;
  return { ...others, [tag]: more.length === 0 ? first : strings([first, ...more]) };
}

type Values = PgSmartTagsDict[string] | undefined;

function valuesOf(values: Values): (string | true)[] {
  return [values ?? []].flat();
}

function strings(values: Values): string[] {
  return valuesOf(values).filter((value) => typeof value === "string");
}

const RELATIONS: Readonly<Record<string, string>> = { v: "view", m: "materialized view", f: "foreign table" };

function relationName(table: PgClass): string {
  return `${RELATIONS[table.relkind] ?? "table"} ${qualifiedName(table)}`;
}

function columnName(column: PgAttribute): string {
  const table = column.getClass();
  return `column ${table ? qualifiedName(table) : column.attrelid}.${sqlName(column.attname)}`;
}

function constraintName(constraint: PgConstraint): string {
  const table = constraint.getClass();
  return `constraint ${sqlName(constraint.conname)}${table ? ` on ${qualifiedName(table)}` : ""}`;
}

function qualifiedName(table: PgClass): string {
  return sqlName(table.getNamespace()?.nspname ?? "", table.relname);
}
