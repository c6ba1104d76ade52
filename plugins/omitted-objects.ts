import { type GraphQLSchema, isObjectType } from "grafast/graphql";
import type { PgProc, PgType } from "graphile-build-pg/pg-introspection";
import { type Catalog, mayCallRoutine, mayNameColumn, mayNameTable } from "#catalog";
import { quotedName } from "#postgres/client";
import { functionResourcesOf, type SchemaResource } from "./table.ts";

const UNQUOTED_NAME = /^[a-z_][a-z0-9_$]*$/;

/** A database object that callers may use and the GraphQL schema omits. */
export type OmittedObject = {
  /** `function public.search(text, text)` */
  readonly object: string;
  /** A clause: "it takes VARIADIC arguments". */
  readonly reason: string;
  /** SQL that makes it appear, or silences the finding. */
  readonly fix: string;
  /** True when the schema cannot be built with it; false when a documented rule omits it. */
  readonly isBuildFault: boolean;
  /** The table or function that it is or belongs to; null for objects of documented rules, types and schemas. */
  readonly holder?: ObjectHolder | null;
};

export type ObjectHolder = {
  readonly kind: "table" | "function";
  readonly schema: string;
  readonly name: string;
  readonly column?: string;
};

/** True if the role may use the object in some way, so that its name is no secret. */
export function isKnownTo(role: string, { holder }: OmittedObject, catalog: Catalog): boolean {
  if (!holder) return false;
  const { kind, schema, name, column } = holder;
  if (kind === "function") {
    const routines = catalog.schemas.get(schema)?.routines.get(name) ?? [];
    return routines.some((routine) => mayCallRoutine(catalog, role, routine));
  }
  const table = catalog.findTable(holder);
  if (!table || !mayNameTable(catalog, role, table)) return false;
  return column === undefined || mayNameColumn(catalog, role, table, column);
}

/** Functions without a field, because GraphQL has no type for a parameter or the result. */
export function findFunctionsWithoutField(build: GraphileBuild.Build, schema: GraphQLSchema): OmittedObject[] {
  return functionResourcesOf(build).flatMap((resource): OmittedObject[] => {
    const place = fieldPlaceOf(resource, build);
    const type = place && schema.getType(place.type);
    // Functions of a row type that callers cannot see are not reported.
    if (!place || (place.type !== "Mutation" && !isObjectType(type))) return [];
    if (isObjectType(type) && type.getFields()[place.field]) return [];
    return [functionWithoutType(resourceSignature(resource))];
  });
}

/** A function with a parameter or result of a type that GraphQL does not have. */
export function functionWithoutType(signature: string): OmittedObject {
  return {
    object: `function ${signature}`,
    reason: "GraphQL has no type for a parameter or the result",
    fix: `-- Use other parameter and result types, or revoke execute on function ${signature}.`,
    isBuildFault: false,
  };
}

type FieldPlace = { readonly type: string; readonly field: string };

function fieldPlaceOf(resource: SchemaResource, { behavior, inflection }: GraphileBuild.Build): FieldPlace | null {
  if (behavior.pgResourceMatches(resource, "function:mutationField")) {
    return { type: "Mutation", field: inflection.customMutationField({ resource }) };
  }
  if (behavior.pgResourceMatches(resource, "queryField")) {
    return { type: "Query", field: inflection.customQueryField({ resource }) };
  }
  if (behavior.pgResourceMatches(resource, "typeField")) {
    const { codec } = resource.parameters[0]!;
    return { type: inflection.tableType(codec), field: inflection.computedAttributeField({ resource }) };
  }
  return null;
}

/** `public.search(text,int4)` of the identifier `main.public.search(text,int4)`. */
function resourceSignature({ identifier }: SchemaResource): string {
  return identifier.slice(identifier.indexOf(".") + 1);
}

/** `public.things`, quoted where SQL needs it. */
export function quoteSqlName(...parts: readonly string[]): string {
  return parts.map((part) => (UNQUOTED_NAME.test(part) ? part : quotedName(part))).join(".");
}

/** `public.search(text, integer)` */
export function functionSignature(proc: PgProc): string {
  const types = inputTypesOf(proc).map(sqlTypeName).join(", ");
  return `${quoteSqlName(proc.getNamespace()?.nspname ?? "", proc.proname)}(${types})`;
}

export function inputTypesOf(proc: PgProc): PgType[] {
  return proc
    .getArguments()
    .filter(({ isIn, isVariadic }) => isIn || isVariadic)
    .map(({ type }) => type);
}

export function sqlTypeName(type: PgType): string {
  const element = type.typcategory === "A" ? type.getElemType() : undefined;
  if (element) return `${sqlTypeName(element)}[]`;
  const schema = type.getNamespace()?.nspname ?? "pg_catalog";
  return schema === "pg_catalog" ? quoteSqlName(type.typname) : quoteSqlName(schema, type.typname);
}
