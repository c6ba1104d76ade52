import { forEachInSlices } from "#runtime/concurrency";
import type { CatalogQuery } from "./catalog-query.ts";
import type { QualifiedName } from "./data-types.ts";

const TARGET_LIST_LABEL = " :targetList ";

const HIDDEN_TABLES = `
  select c.oid as table, n.nspname as schema, c.relname as "tableName",
    a.attnum as position, a.attname as name, a.attnotnull or t.typnotnull as "notNull"
  from pg_class c join pg_namespace n on n.oid = c.relnamespace
    join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    join pg_type t on t.oid = a.atttypid
  where c.oid = any ($1)
  order by c.oid, a.attnum`;

/** The columns of tables or views that the columns of a view show, by the view's oid. */
export type ViewColumnSources = ReadonlyMap<number, readonly ViewColumnSource[]>;

type RuleRow = { view: number; tree: string };

// Transfers only the target list of the query tree, which is much longer. Without sub-selects in expressions, the outermost list is
// the last one.
const VIEW_RULES = `
  select r.ev_class as view,
    case when strpos(r.ev_action::text, '{SUBLINK') = 0 then split_part(r.ev_action::text, ' :targetList ', -1)
      else r.ev_action::text end as tree
  from pg_rewrite r join pg_class c on c.oid = r.ev_class
  where c.relkind in ('v', 'm') and r.rulename = '_RETURN' and (c.relnamespace = any ($1) or c.oid = any ($2))
  order by r.ev_class`;

const VIEWS_BY_OID = `
  select oid from pg_class where oid = any ($1) and relkind in ('v', 'm') order by oid`;

/** Reads the views in these schemas, and the views that they are based on in any schema. */
export async function readViewColumns(read: CatalogQuery, schemas: readonly number[]): Promise<ViewColumnSources> {
  const targets = new Map<number, readonly ViewColumnSource[]>();
  let rules = await read<RuleRow>("views", VIEW_RULES, [schemas, []]);
  while (rules.length > 0) {
    await forEachInSlices(rules, ({ view, tree }) => targets.set(view, parseViewColumns(tree)));
    const tablesBelow = new Set([...targets.values()].flat().map(({ table }) => table));
    const unknown = [...tablesBelow].filter((oid) => !targets.has(oid));
    const views = await read<{ oid: number }>("views", VIEWS_BY_OID, [unknown]);
    rules = views.length > 0 ? await read<RuleRow>("views", VIEW_RULES, [[], views.map(({ oid }) => oid)]) : [];
  }
  return targets;
}

/** Resolves the columns of views to columns of tables, through other views. */
export function resolveToTables(views: ViewColumnSources): ViewColumnSources {
  const byPosition = new Map([...views].map(([view, targets]) => [view, new Map(targets.map((t) => [t.position, t]))]));

  const follow = (target: ViewColumnSource, visited: ReadonlySet<number>): ViewColumnSource | null => {
    const view = byPosition.get(target.table);
    if (!view) return target;
    // `create or replace view` can create a view that selects from itself: Postgres only rejects its execution.
    if (visited.has(target.table)) return null;
    const next = view.get(target.column);
    return next ? follow(next, new Set(visited).add(target.table)) : null;
  };

  return new Map(
    [...views].map(([view, targets]) => [
      view,
      targets.flatMap((target) => {
        const base = follow(target, new Set([view]));
        return base ? [{ position: target.position, table: base.table, column: base.column }] : [];
      }),
    ]),
  );
}

/** A column of a view that shows a column of a table or view unchanged. */
type ViewColumnSource = { readonly position: number; readonly table: number; readonly column: number };

/**
 * Parses a view's query tree in the format of `pg_rewrite.ev_action`, and returns the columns that it takes from its tables:
 * `({QUERY … :targetList ({TARGETENTRY … :resno 1 … :resorigtbl 16385 :resorigcol 2 :resjunk false} …) …})`.
 * Takes the whole tree, or the text after `:targetList ` of its outermost query.
 * In names, blanks and brackets are escaped with a backslash; unescaped ones are structure.
 */
export function parseViewColumns(tree: string): ViewColumnSource[] {
  const start = tree.startsWith("({QUERY") ? findTargetList(tree) : 0;
  const targets: ViewColumnSource[] = [];
  // An empty list is written as `<>`.
  if (tree[start] !== "(") return targets;
  for (let at = start + 1; tree[at] === "{" || tree[at] === " "; ) {
    if (tree[at] === " ") {
      at++;
      continue;
    }
    const end = findClosingBracket(tree, at);
    const target = parseTargetEntry(tree.slice(at, end));
    if (target) targets.push(target);
    at = end;
  }
  return targets;
}

function findTargetList(tree: string): number {
  for (let at = "({".length; at < tree.length; ) {
    switch (tree[at]) {
      case "\\":
        at += 2;
        break;
      case "{":
      case "(":
        at = findClosingBracket(tree, at);
        break;
      case " ":
        if (tree.startsWith(TARGET_LIST_LABEL, at)) return at + TARGET_LIST_LABEL.length;
        at++;
        break;
      default:
        at++;
    }
  }
  throw new Error("A view's query tree has no target list");
}

function findClosingBracket(tree: string, start: number): number {
  let depth = 0;
  for (let at = start; at < tree.length; at++) {
    switch (tree[at]) {
      case "\\":
        at++;
        break;
      case "{":
      case "(":
        depth++;
        break;
      case "}":
      case ")":
        if (--depth === 0) return at + 1;
    }
  }
  throw new Error("A view's query tree ends too early");
}

function parseTargetEntry(entry: string): ViewColumnSource | null {
  // The entry's own fields come after those of the expression inside it.
  const fields = entry.slice(entry.lastIndexOf(" :resno "));
  const numberAfter = (field: string) => Number(new RegExp(` :${field} (\\d+)`).exec(fields)?.[1]);
  const [position, table, column] = [numberAfter("resno"), numberAfter("resorigtbl"), numberAfter("resorigcol")];
  if (!position || !table || !column || / :resjunk true/.test(fields)) return null;
  return { position, table, column };
}

/** A table outside the schemas that are read, which a view shows or a foreign key refers to. */
type HiddenTable = QualifiedName & { readonly columns: ReadonlyMap<number, HiddenColumn> };
type HiddenColumn = { readonly name: string; readonly nullable: boolean };

type HiddenColumnRow = {
  table: number;
  schema: string;
  tableName: string;
  position: number;
  name: string;
  notNull: boolean;
};

export async function readHiddenTables(
  read: CatalogQuery,
  oids: readonly number[],
): Promise<ReadonlyMap<number, HiddenTable>> {
  if (oids.length === 0) return new Map();
  const rows = await read<HiddenColumnRow>("hiddenTables", HIDDEN_TABLES, [oids]);
  const tables = new Map<number, HiddenTable>();
  for (const [oid, columns] of Map.groupBy(rows, ({ table }) => table)) {
    tables.set(oid, {
      schema: columns[0]!.schema,
      name: columns[0]!.tableName,
      columns: new Map(columns.map(({ position, name, notNull }) => [position, { name, nullable: !notNull }])),
    });
  }
  return tables;
}
