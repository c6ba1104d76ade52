import { baseTypeOf, type Catalog, type QualifiedName, type UsedObjects } from "#catalog";
import type { Intent } from "./intent/intent.ts";
import type { Plan } from "./plan/plan.ts";
import type { NestedStatements } from "./prepare.ts";

type RelationSets = {
  readonly select: Set<string>;
  readonly insert: Set<string>;
  readonly update: Set<string>;
  deletes: boolean;
};

export function listUsedObjects(
  { plan, nested }: { readonly plan: Plan; readonly nested: NestedStatements | null },
  intent: Intent,
  catalog: Catalog,
): UsedObjects {
  const walk = new PlanWalk(catalog);
  if (plan.kind === "call") {
    // The keys of a body that is passed as a whole are not arguments.
    const names = argumentNamesOf(intent).filter((name) => plan.routine.arguments.some((each) => each.name === name));
    walk.addRoutine(plan.routine, names);
    const type = baseTypeOf(plan.routine.returns.type);
    if (type.kind === "composite" && type.table) walk.addAlias(plan.rows.alias, type.table);
  }
  if (plan.kind === "write") {
    walk.addAlias(plan.rows.alias, plan.table);
    walk.addWrite(plan.table, intent);
    for (const name of plan.result.names) walk.addColumns(plan.table, "select", [name]);
  }
  const returnsRows = plan.kind !== "write" || ("returned" in intent && intent.returned === "rows");
  walk.visit([returnsRows && plan.rows, plan.kind === "write" && plan.change, plan.kind === "call" && plan.call]);
  for (const { plan: step } of nested?.steps ?? []) {
    walk.addColumns(step.table, step.kind === "insert rows" ? "insert" : "update", nestedColumns(step));
  }
  return walk.result();
}

function nestedColumns(step: NestedStatements["steps"][number]["plan"]): string[] {
  if (step.kind === "insert rows") return step.columns.map(({ name }) => name);
  return "set" in step ? step.set.map(({ name }) => name) : [];
}

function argumentNamesOf(intent: Intent): string[] {
  if (intent.kind !== "call" || intent.argument.kind === "raw") return [];
  return intent.argument.kind === "query"
    ? intent.argument.values.map(([name]) => name)
    : [...(intent.argument.names ?? [])];
}

/** Reads the tables and columns of a plan by the members that all its parts have: the source and the columns of an alias. */
class PlanWalk {
  readonly #catalog: Catalog;
  readonly #relations = new Map<string, RelationSets>();
  readonly #functions = new Map<string, Set<string>>();
  readonly #aliases = new Map<string, QualifiedName>();
  readonly #columns: (readonly [alias: string, name: string])[] = [];
  readonly #visited = new WeakSet<object>();

  constructor(catalog: Catalog) {
    this.#catalog = catalog;
  }

  addAlias(alias: string, table: QualifiedName): void {
    this.#aliases.set(alias, table);
    this.#setsOf(table);
  }

  addRoutine({ schema, name }: QualifiedName, names: readonly string[] = []): void {
    const key = `${schema}.${name}`;
    this.#functions.set(key, new Set([...(this.#functions.get(key) ?? []), ...names]));
  }

  addColumns(table: QualifiedName, verb: "select" | "insert" | "update", names: readonly string[]): void {
    const found = this.#catalog.findTable(table);
    const sets = this.#setsOf(table);
    for (const name of names)
      if (!found || found.columns.has(name) || found.computedColumns.has(name)) sets[verb].add(name);
  }

  addWrite(table: QualifiedName, intent: Intent): void {
    if (intent.kind === "delete") this.#setsOf(table).deletes = true;
    if (intent.kind !== "insert" && intent.kind !== "update") return;
    this.addColumns(table, intent.kind, intent.payload.columns);
    if (intent.kind === "update") {
      this.addColumns(table, "select", intent.key ?? []);
      this.addColumns(table, "update", intent.operators?.map(({ column }) => column) ?? []);
    } else if (intent.upsert?.resolution === "merge") this.addColumns(table, "update", intent.payload.columns);
  }

  visit(part: unknown): void {
    if (typeof part !== "object" || part === null || part instanceof Map || this.#visited.has(part)) return;
    this.#visited.add(part);
    // A table or function of the catalogue leads to all others.
    if ("columns" in part && part.columns instanceof Map) return;
    if (Array.isArray(part)) {
      for (const each of part) this.visit(each);
      return;
    }
    this.#note(part as Readonly<Record<string, unknown>>);
    for (const each of Object.values(part)) this.visit(each);
  }

  result(): UsedObjects {
    for (const [alias, name] of this.#columns) {
      const table = this.#aliases.get(alias);
      if (table) this.addColumns(table, "select", [name]);
    }
    const relations = [...this.#relations].sort().map(([name, { select, insert, update, deletes }]) => {
      return [
        name,
        { select: [...select].sort(), insert: [...insert].sort(), update: [...update].sort(), deletes },
      ] as const;
    });
    const functions = [...this.#functions].sort().map(([name, names]) => [name, [...names].sort()] as const);
    return { relations: Object.fromEntries(relations), functions: Object.fromEntries(functions) };
  }

  #note(part: Readonly<Record<string, unknown>>): void {
    const { kind, alias, source, outputs, routine, through } = part;
    if (kind === "column" && typeof part.of === "string") this.#columns.push([part.of, String(part.name)]);
    if (isName(routine)) this.addRoutine(routine);
    if (isSource(source) && typeof alias === "string") {
      if (source.kind === "table") this.addAlias(alias, source.name);
      const table = this.#aliases.get(alias);
      const selectsAll = Array.isArray(outputs) && outputs.some((output) => output.kind === "all");
      if (selectsAll && table)
        this.addColumns(table, "select", [...(this.#catalog.findTable(table)?.columns.keys() ?? [])]);
    }
    if (isJunction(through))
      this.addColumns(
        through.table,
        "select",
        through.on.map(({ junction }) => junction),
      );
  }

  #setsOf({ schema, name }: QualifiedName): RelationSets {
    const key = `${schema}.${name}`;
    const existing = this.#relations.get(key);
    if (existing) return existing;
    const made = { select: new Set<string>(), insert: new Set<string>(), update: new Set<string>(), deletes: false };
    this.#relations.set(key, made);
    return made;
  }
}

function isName(value: unknown): value is QualifiedName {
  return typeof value === "object" && value !== null && "schema" in value && "name" in value;
}

function isSource(value: unknown): value is { readonly kind: string; readonly name: QualifiedName } {
  return typeof value === "object" && value !== null && "kind" in value;
}

function isJunction(
  value: unknown,
): value is { readonly table: QualifiedName; readonly on: readonly { junction: string }[] } {
  return typeof value === "object" && value !== null && "table" in value && "on" in value;
}
