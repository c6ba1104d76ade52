import {
  baseTypeOf,
  type Catalog,
  type CatalogColumn,
  type CatalogTable,
  type CompositeType,
  type DataType,
  exposedTables,
  type Relationship,
  type Routine,
} from "#catalog";
import { isCallable } from "#planner/find-target";
import { exposedRoutines, mayExecute, mayUseSchema, qualifiedName, supports, type Verb } from "./exposed-objects.ts";

/** `/rest/v1`, as clients use it. */
export type TableInterface = {
  readonly relations: Readonly<Record<string, RelationShape>>;
  /** The overloads by name. */
  readonly functions: Readonly<Record<string, readonly FunctionShape[]>>;
};

export type RelationShape = {
  readonly columns: Readonly<Record<string, ColumnShape>>;
  readonly deletable: boolean;
  /** The columns of each primary key and unique constraint, which `on_conflict` can name. */
  readonly keys: readonly string[];
  readonly relationships: readonly RelationshipShape[];
  /** The constraints that a written row is checked against, by name. */
  readonly constraints: Readonly<Record<string, string>>;
};

export type ColumnShape = {
  readonly type: TypeShape;
  readonly nullable: boolean;
  readonly selectable: boolean;
  readonly insertable: boolean;
  readonly updatable: boolean;
  /** True if an insert has to name the column: it is not nullable and has no default. */
  readonly required: boolean;
};

export type TypeShape = {
  /** The type with modifiers: `numeric(10,2)`. */
  readonly name: string;
  /** The type without domains and modifiers. */
  readonly base: string;
  /** The values of an enum. */
  readonly values?: readonly string[];
  /** The attributes of a composite type or of several result columns; the attributes of an exposed table are its columns. */
  readonly attributes?: Readonly<Record<string, TypeShape>>;
};

type RelationshipShape = { readonly name: string; readonly target: string; readonly toOne: boolean };

export type FunctionShape = {
  readonly arguments: readonly { readonly name: string; readonly type: TypeShape; readonly required: boolean }[];
  readonly returns: TypeShape & { readonly set: boolean };
  /** True if GET may call it. */
  readonly readOnly: boolean;
};

/** The tables and functions that one of the roles may use. */
export function readTableInterface(catalog: Catalog, roles: readonly string[]): TableInterface {
  const tests = makeTests(catalog, roles);
  const relations = exposedTables(catalog)
    .map((table) => [qualifiedName(table), readRelation(table, tests)] as const)
    .filter(([, { columns, deletable }]) => deletable || Object.keys(columns).length > 0);
  const routines = exposedRoutines(catalog).filter((routine) => isCallable(routine) && tests.mayExecute(routine));
  const overloads = [...Map.groupBy(routines, qualifiedName)];
  return {
    relations: Object.fromEntries(relations),
    functions: Object.fromEntries(
      overloads.map(([name, all]) => [name, all.map((routine) => toFunctionShape(routine, catalog))]),
    ),
  };
}

/** Tests of the privileges that at least one of the roles has. */
type AudienceTests = {
  readonly catalog: Catalog;
  may(verb: Verb, table: CatalogTable, column?: string): boolean;
  isReadable(table: CatalogTable): boolean;
  mayExecute(routine: Routine): boolean;
};

function makeTests(catalog: Catalog, roles: readonly string[]): AudienceTests {
  const may: AudienceTests["may"] = (verb, table, column) =>
    roles.some((role) => mayUseSchema(catalog, role, table) && catalog.hasPrivilege(role, verb, table, column));
  return {
    catalog,
    may,
    isReadable: (table) => [...table.columns.keys()].some((column) => may("select", table, column)),
    mayExecute: (routine) => roles.some((role) => mayExecute(catalog, role, routine)),
  };
}

function readRelation(table: CatalogTable, tests: AudienceTests): RelationShape {
  const { primaryKey, uniqueKeys, computedColumns } = table;
  const columns = [...table.columns.values()].map((column) => [column.name, readColumn(table, column, tests)] as const);
  const computed = [...computedColumns.values()]
    .filter((routine) => routine.schema === table.schema && tests.mayExecute(routine) && tests.isReadable(table))
    .map(({ name, returns }) => [name, { ...COMPUTED, type: toTypeShape(returns, tests.catalog) }] as const);
  const keys = [primaryKey, ...uniqueKeys.filter(({ predicate }) => predicate === null).map((key) => key.columns)];
  return {
    columns: Object.fromEntries([...computed, ...columns].filter(([, column]) => isUsed(column))),
    deletable: supports(table, "delete") && tests.may("delete", table),
    keys: keys.filter((key) => key.length > 0).map((key) => [...key].sort().join(", ")),
    relationships: listRelationships(table, tests),
    constraints: readConstraints(table),
  };
}

/** A function of the row that `select` can name. */
const COMPUTED = { nullable: true, selectable: true, insertable: false, updatable: false, required: false };

function readColumn(table: CatalogTable, column: CatalogColumn, { may, catalog }: AudienceTests): ColumnShape {
  const { name, nullable, identity } = column;
  const isWritable = column.generated === null && identity !== "always";
  const allows = (verb: "insert" | "update") => isWritable && supports(table, verb) && may(verb, table, name);
  return {
    type: toTypeShape(column, catalog),
    nullable,
    selectable: may("select", table, name),
    insertable: allows("insert"),
    updatable: allows("update"),
    required: !nullable && isWritable && identity === null && column.default === null,
  };
}

function isUsed({ selectable, insertable, updatable }: ColumnShape): boolean {
  return selectable || insertable || updatable;
}

/** A table can be embedded by foreign keys in either direction, by a junction table, and by a function. */
function listRelationships(table: CatalogTable, { catalog, isReadable }: AudienceTests): RelationshipShape[] {
  const near = catalog.relationshipsOf(table).flatMap(({ target }) => catalog.findTable(target) ?? []);
  const behind = near.flatMap((other) =>
    catalog.referencesFrom(other).flatMap(({ target }) => catalog.findTable(target) ?? []),
  );
  const targets = [...new Set([...near, ...behind])].filter(isReadable);
  return targets.flatMap((target) => catalog.relationshipsBetween(table, target)).map(toRelationshipShape);
}

function toRelationshipShape(relationship: Relationship): RelationshipShape {
  const target = qualifiedName(relationship.target);
  switch (relationship.kind) {
    case "computed":
      return { name: relationship.routine.name, target, toOne: relationship.toOne };
    case "many-to-many": {
      const { junction, sourceConstraint, targetConstraint } = relationship;
      return { name: `${qualifiedName(junction)} (${sourceConstraint}, ${targetConstraint})`, target, toOne: false };
    }
    default: {
      const { constraint, keyAt, kind } = relationship;
      return {
        name: keyAt === "source" ? constraint : `${constraint} (reversed)`,
        target,
        toOne: kind !== "one-to-many",
      };
    }
  }
}

function readConstraints({ checks, foreignKeys, uniqueKeys }: CatalogTable): Record<string, string> {
  const all = [
    ...checks.map(({ name, kind, columns, expression }) => [name, `${kind} (${expression ?? columns.join(", ")})`]),
    ...foreignKeys.map(({ name, columns, target }) => [
      name,
      `foreign key (${columns.join(", ")}) to ${qualifiedName(target)}`,
    ]),
    ...uniqueKeys.map(({ name, columns }) => [name, `unique (${columns.join(", ")})`]),
  ];
  return Object.fromEntries(all);
}

type TypedValue = { readonly type: DataType; readonly sqlType?: string };

function toTypeShape({ type, sqlType }: TypedValue, catalog: Catalog, isInner = false): TypeShape {
  const base = baseTypeOf(type);
  const element = base.kind === "array" ? baseTypeOf(base.element) : base;
  const isExposed = element.kind === "composite" && element.table && catalog.schemas.get(element.table.schema)?.exposed;
  const hasAttributes = element.kind === "composite" && !isExposed && !isInner;
  return {
    name: sqlType ?? type.sqlName,
    base: base.sqlName,
    ...(element.kind === "enum" && { values: element.values }),
    ...(hasAttributes && { attributes: toAttributes(element.attributes, catalog) }),
  };
}

function toAttributes(attributes: CompositeType["attributes"], catalog: Catalog): Record<string, TypeShape> {
  return Object.fromEntries([...attributes].map(([name, attribute]) => [name, toTypeShape(attribute, catalog, true)]));
}

function toFunctionShape(routine: Routine, catalog: Catalog): FunctionShape {
  const { returns } = routine;
  return {
    arguments: routine.arguments.map(({ name, type, required }) => {
      return { name: name ?? "", type: toTypeShape({ type }, catalog), required };
    }),
    returns: {
      ...toTypeShape(returns, catalog),
      ...(returns.columns.size > 0 && { attributes: toAttributes(returns.columns, catalog) }),
      set: returns.set,
    },
    readOnly: routine.volatility !== "volatile",
  };
}
