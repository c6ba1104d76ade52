import { memoize } from "../../engine/cache/memoize.ts";
import type { Catalog } from "../../engine/catalog/catalog.ts";
import type { Routine } from "../../engine/catalog/routines.ts";
import type { CatalogSchema } from "../../engine/catalog/schemas.ts";
import type { CatalogColumn, CatalogTable } from "../../engine/catalog/tables.ts";
import type { QualifiedName } from "../../engine/catalog/types.ts";
import { forEachInSlices } from "../../engine/concurrency/event-loop-sharing.ts";

type VisibleVerb = "select" | "insert" | "update" | "delete";

export type VisibleTable = {
  readonly table: CatalogTable;
  /** What can be done to it and the role may do; empty for a table that is not to be seen. */
  readonly verbs: ReadonlySet<VisibleVerb>;
  /** Those that the role may select, insert or update, in their order. */
  readonly columns: readonly CatalogColumn[];
  readonly selectable: readonly CatalogColumn[];
  readonly insertable: readonly CatalogColumn[];
  readonly updatable: readonly CatalogColumn[];
};

/** The schema as one role sees it: what is not here is not to be named in a document. */
export type VisibleSchema = {
  /** Null when it does not exist or the role has no `usage` of it: then there is nothing to see. */
  readonly schema: CatalogSchema | null;
  readonly tables: readonly VisibleTable[];
  /** The overloads of one name. */
  readonly routines: readonly (readonly Routine[])[];
  /** In any schema that is read; null when the role may do nothing with it. */
  findVisible(table: QualifiedName): VisibleTable | null;
  /** Whether a name may be told, be it of a table that is not read. */
  mayName(table: QualifiedName): boolean;
  /** Whether the role may use what lies in it. */
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
    const shown = new Set(Object.values(usable).flat());
    return {
      table,
      verbs: new Set(VERBS.filter((verb) => supports(table, verb) && (usable[verb].length > 0 || mayUse(verb)))),
      columns: columns.filter((column) => shown.has(column)),
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

/** Types that a whole request body can be. */
const BODY_TYPES = new Set(["json", "jsonb", "text", "xml", "bytea"]);

/** Arguments are passed by name; one without a name takes the body, when there is no other. */
function isCallable({ kind, arguments: given }: Routine): boolean {
  if (kind !== "function") return false;
  if (given.every(({ name }) => name !== null)) return true;
  const [only, ...others] = given;
  return others.length === 0 && only!.type.schema === "pg_catalog" && BODY_TYPES.has(only!.type.name);
}

/** What a document is about: one exposed schema, as one role sees it. */
export type TableDocumentOptions = {
  readonly catalog: Catalog;
  readonly role: string;
  readonly schema: string;
  /** By name; null: all tables of the schema, and its functions. */
  readonly tables: readonly string[] | null;
  readonly mode: "follow-privileges" | "ignore-privileges";
  /** `https://api.example.org/rest/v1`, or `/rest/v1` for wherever the document was fetched from. */
  readonly serverUrl: string;
  /** Whether the document asks for a token. */
  readonly securityActive: boolean;
  /** The service's own. */
  readonly version: string;
};
