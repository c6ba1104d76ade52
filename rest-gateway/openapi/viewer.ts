import type { Column } from "../../engine/catalog/columns.ts";
import type { QualifiedName } from "../../engine/catalog/qualified-name.ts";
import type { Routine } from "../../engine/catalog/routines.ts";
import type { Schema } from "../../engine/catalog/schemas.ts";
import { inSlices } from "../../engine/catalog/slices.ts";
import type { Table } from "../../engine/catalog/tables.ts";
import { memoized } from "../../engine/memoized.ts";
import type { Subject } from "./subject.ts";

export type Verb = "select" | "insert" | "update" | "delete";

export type VisibleTable = {
  readonly table: Table;
  /** What can be done to it and the role may do; empty for a table that is not to be seen. */
  readonly verbs: ReadonlySet<Verb>;
  /** Those that the role may select, insert or update, in their order. */
  readonly columns: readonly Column[];
  readonly selectable: readonly Column[];
  readonly insertable: readonly Column[];
  readonly updatable: readonly Column[];
};

/** The schema as one role sees it: what is not here is not to be named in a document. */
export type Viewer = {
  /** Null when it does not exist or the role has no `usage` of it: then there is nothing to see. */
  readonly schema: Schema | null;
  readonly tables: readonly VisibleTable[];
  /** The overloads of one name. */
  readonly routines: readonly (readonly Routine[])[];
  /** In any schema that is read; null when the role may do nothing with it. */
  see(table: QualifiedName): VisibleTable | null;
  /** Whether a name may be told, be it of a table that is not read. */
  mayKnow(table: QualifiedName): boolean;
  /** Whether the role may use what lies in it. */
  maySeeInto(schema: string): boolean;
  mayCall(routine: Routine): boolean;
};

type Audience = Pick<Subject, "catalog" | "role" | "schema" | "tables" | "mode">;

export async function makeViewer({ catalog, role, schema: name, tables: wanted, mode }: Audience): Promise<Viewer> {
  const seesAll = mode === "ignore-privileges";
  const maySeeInto = (other: string) => {
    const known = catalog.schemas.get(other);
    return seesAll || other === "pg_catalog" || (known !== undefined && catalog.mayRole(role, "usage", known));
  };
  const found = catalog.schemas.get(name);
  const schema = found?.exposed && maySeeInto(name) ? found : null;
  const mayCall = (routine: Routine) => seesAll || catalog.mayRole(role, "execute", routine);

  const view = memoized((table: Table): VisibleTable => {
    const columns = [...table.columns.values()];
    const mayUse = (verb: Verb, column?: string) => seesAll || catalog.mayRole(role, verb, table, column);
    const open = (verb: "select" | "insert" | "update") =>
      !can(table, verb) ? [] : mayUse(verb) ? columns : columns.filter((column) => mayUse(verb, column.name));
    const usable = { select: open("select"), insert: open("insert"), update: open("update"), delete: [] };
    const shown = new Set(Object.values(usable).flat());
    return {
      table,
      verbs: new Set(VERBS.filter((verb) => can(table, verb) && (usable[verb].length > 0 || mayUse(verb)))),
      columns: columns.filter((column) => shown.has(column)),
      selectable: usable.select,
      insertable: usable.insert,
      updatable: usable.update,
    };
  });

  const isSeen = ({ table, verbs }: VisibleTable) => verbs.size > 0 && !table.isPartition;
  const see = (target: QualifiedName) => {
    const table = maySeeInto(target.schema) ? catalog.findTable(target) : undefined;
    return table && isSeen(view(table)) ? view(table) : null;
  };

  const tables: VisibleTable[] = [];
  const routines: (readonly Routine[])[] = [];
  const isWanted = (table: Table) => wanted === null || wanted.includes(table.name);
  await inSlices(schema?.tables.values() ?? [], (table) => {
    if (isWanted(table) && isSeen(view(table))) tables.push(view(table));
  });
  await inSlices(wanted === null ? (schema?.routines.values() ?? []) : [], (overloads) => {
    const callable = overloads.filter((routine) => isCallable(routine) && mayCall(routine));
    if (callable.length > 0) routines.push(callable);
  });

  return {
    schema,
    tables,
    routines,
    see,
    mayKnow: (target) => seesAll || see(target) !== null,
    maySeeInto,
    mayCall,
  };
}

const VERBS: readonly Verb[] = ["select", "insert", "update", "delete"];

function can(table: Table, verb: Verb): boolean {
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
const BODIES = new Set(["json", "jsonb", "text", "xml", "bytea"]);

/** Arguments are passed by name; one without a name takes the body, when there is no other. */
function isCallable({ kind, arguments: given }: Routine): boolean {
  if (kind !== "function") return false;
  if (given.every(({ name }) => name !== null)) return true;
  const [only, ...others] = given;
  return others.length === 0 && only!.type.schema === "pg_catalog" && BODIES.has(only!.type.name);
}
