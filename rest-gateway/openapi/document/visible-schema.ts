import type { Catalog, CatalogColumn, CatalogSchema, CatalogTable, QualifiedName, Routine } from "#catalog";
import { memoize } from "#runtime";
import { forEachInSlices } from "#runtime/concurrency";

type VisibleVerb = "select" | "insert" | "update" | "delete";

export type VisibleTable = {
  readonly table: CatalogTable;
  /** The operations that the table supports and the role may use; empty for invisible tables. */
  readonly verbs: ReadonlySet<VisibleVerb>;
  /** The columns that the role may select, insert or update, in their order. */
  readonly columns: readonly CatalogColumn[];
  readonly selectable: readonly CatalogColumn[];
  readonly insertable: readonly CatalogColumn[];
  readonly updatable: readonly CatalogColumn[];
};

/** The schema as one role sees it. A document names nothing else. */
export type VisibleSchema = {
  /** The schema; null if it does not exist or the role lacks USAGE. */
  readonly schema: CatalogSchema | null;
  readonly tables: readonly VisibleTable[];
  /** Functions by name, with their overloads. */
  readonly routines: readonly (readonly Routine[])[];
  /** Finds a table of any schema; null if the role has no privilege on it. */
  findVisible(table: QualifiedName): VisibleTable | null;
  /** Returns true if a document may name the table. */
  mayName(table: QualifiedName): boolean;
  /** Returns true if the role has USAGE of the schema. */
  mayUseSchema(schema: string): boolean;
  mayCall(routine: Routine): boolean;
};

type SchemaAudience = Pick<TableDocumentOptions, "catalog" | "role" | "schema" | "tables" | "mode">;

export async function viewSchema({
  catalog,
  role,
  schema: name,
  tables: wanted,
  mode,
}: SchemaAudience): Promise<VisibleSchema> {
  const seesAll = mode === "ignore-privileges";
  const mayUseSchema = (other: string) => {
    const known = catalog.schemas.get(other);
    return seesAll || other === "pg_catalog" || (known !== undefined && catalog.hasPrivilege(role, "usage", known));
  };
  const found = catalog.schemas.get(name);
  const schema = found?.exposed && mayUseSchema(name) ? found : null;
  const mayCall = (routine: Routine) => seesAll || catalog.hasPrivilege(role, "execute", routine);

  const view = memoize((table: CatalogTable): VisibleTable => {
    const columns = [...table.columns.values()];
    const mayUse = (verb: VisibleVerb, column?: string) => seesAll || catalog.hasPrivilege(role, verb, table, column);
    const open = (verb: "select" | "insert" | "update") =>
      !supports(table, verb) ? [] : mayUse(verb) ? columns : columns.filter((column) => mayUse(verb, column.name));
    const usable = { select: open("select"), insert: open("insert"), update: open("update"), delete: [] };
    const usableNames = new Set(Object.values(usable).flat());
    return {
      table,
      verbs: new Set(VERBS.filter((verb) => supports(table, verb) && (usable[verb].length > 0 || mayUse(verb)))),
      columns: columns.filter((column) => usableNames.has(column)),
      selectable: usable.select,
      insertable: usable.insert,
      updatable: usable.update,
    };
  });

  const isSeen = ({ table, verbs }: VisibleTable) => verbs.size > 0 && !table.isPartition;
  const findVisible = (target: QualifiedName) => {
    const table = mayUseSchema(target.schema) ? catalog.findTable(target) : undefined;
    return table && isSeen(view(table)) ? view(table) : null;
  };

  const tables: VisibleTable[] = [];
  const routines: (readonly Routine[])[] = [];
  const isWanted = (table: CatalogTable) => wanted === null || wanted.includes(table.name);
  await forEachInSlices(schema?.tables.values() ?? [], (table) => {
    if (isWanted(table) && isSeen(view(table))) tables.push(view(table));
  });
  await forEachInSlices(wanted === null ? (schema?.routines.values() ?? []) : [], (overloads) => {
    const callable = overloads.filter((routine) => isCallable(routine) && mayCall(routine));
    if (callable.length > 0) routines.push(callable);
  });

  return {
    schema,
    tables,
    routines,
    findVisible,
    mayName: (target) => seesAll || findVisible(target) !== null,
    mayUseSchema,
    mayCall,
  };
}

export function includesAll(columns: readonly CatalogColumn[], names: readonly string[]): boolean {
  return names.every((name) => columns.some((column) => column.name === name));
}

const VERBS: readonly VisibleVerb[] = ["select", "insert", "update", "delete"];

function supports(table: CatalogTable, verb: VisibleVerb): boolean {
  switch (verb) {
    case "select":
      return true;
    case "insert":
      return table.insertable;
    case "update":
      return table.updatable;
    case "delete":
      return table.deletable;
  }
}

/** Types of arguments that take the whole request body. */
const BODY_TYPES = new Set(["json", "jsonb", "text", "xml", "bytea"]);

/** Returns true if the function can be called. Arguments are passed by name; a single unnamed one takes the body. */
function isCallable({ kind, arguments: given }: Routine): boolean {
  if (kind !== "function") return false;
  if (given.every(({ name }) => name !== null)) return true;
  const [only, ...others] = given;
  return others.length === 0 && only!.type.schema === "pg_catalog" && BODY_TYPES.has(only!.type.name);
}

/** One exposed schema, as one role sees it. */
export type TableDocumentOptions = {
  readonly catalog: Catalog;
  readonly role: string;
  readonly schema: string;
  /** Limits the document to these tables; null for all tables and functions. */
  readonly tables: readonly string[] | null;
  readonly mode: "follow-privileges" | "ignore-privileges";
  /** `https://api.example.org/rest/v1`, or `/rest/v1` for the host that served the document. */
  readonly serverUrl: string;
  /** True if a Swagger document declares a token. */
  readonly securityActive: boolean;
  /** True if requests without an API key are refused. */
  readonly requireApiKey: boolean;
  /** The version of the service. */
  readonly version: string;
};
