import type { Catalog } from "../../../engine/catalog/catalog.ts";
import { readComment } from "../comment.ts";
import type { Viewer, VisibleTable } from "../viewer.ts";
import { componentKey, type Reference } from "./component-key.ts";
import { refuses } from "./error-responses.ts";
import { referToCursor, referToProfile, referToRowFilters, referToShared } from "./parameters.ts";
import { referToRow } from "./row-schemas.ts";
import { REFER_TO_DONE, referToRows, referToWritten } from "./table-responses.ts";

const REFUSES = {
  read: refuses(300, 400, 401, 403, 406, 416),
  insert: refuses(300, 400, 401, 403, 406, 409, 413, 422),
  change: refuses(300, 400, 401, 403, 406, 409, 413, 422),
  remove: refuses(300, 400, 401, 403, 406, 409, 422),
};

type Operation = { readonly [key: string]: unknown };

/** Each table with what the role may do to it. */
export function* tablePaths(viewer: Viewer, catalog: Catalog): Generator<[string, object]> {
  const schema = viewer.schema?.name ?? "";
  const profiles = {
    read: referToProfile({ catalog, schema }, "Accept-Profile"),
    write: referToProfile({ catalog, schema }, "Content-Profile"),
  };
  for (const visible of viewer.tables) {
    yield [`/${encodeURIComponent(visible.table.name)}`, tablePath(visible, profiles)];
  }
}

type Profiles = { readonly read: readonly Reference[]; readonly write: readonly Reference[] };

function tablePath(visible: VisibleTable, profiles: Profiles): object {
  const { verbs } = visible;
  return {
    get: verbs.has("select") ? read(visible, profiles.read) : undefined,
    post: verbs.has("insert") ? insert(visible, profiles.write) : undefined,
    put: canReplace(visible) ? replace(visible, profiles.write) : undefined,
    patch: verbs.has("update") ? update(visible, profiles.write) : undefined,
    delete: verbs.has("delete") ? remove(visible, profiles.write) : undefined,
  };
}

function read(visible: VisibleTable, profile: readonly Reference[]): Operation {
  const shared = referToShared("select", "order", "limit", "offset", "range", "rangeUnit", "preferRead");
  const cursor = referToCursor(visible.selectable.map(({ name }) => name));
  return {
    ...about("read", visible),
    parameters: [...filters(visible), ...shared, ...cursor, ...profile],
    responses: { 200: referToRows(visible), 206: referToRows(visible), ...REFUSES.read },
  };
}

function insert(visible: VisibleTable, profile: readonly Reference[]): Operation {
  const row = referToRow(visible.table.name, "insert");
  return {
    ...about("insert", visible),
    parameters: [...referToShared("select", "columns", "on_conflict", "preferInsert", "idempotencyKey"), ...profile],
    requestBody: {
      required: true,
      content: {
        "application/json": { schema: { oneOf: [row, { type: "array", items: row }] } },
        "application/x-www-form-urlencoded": { schema: row },
        "text/csv": { schema: { type: "string" } },
      },
    },
    // 200: the rows were there, and resolution=merge-duplicates changed them.
    responses: { 200: referToWritten(visible), 201: referToWritten(visible), ...REFUSES.insert },
  };
}

function replace(visible: VisibleTable, profile: readonly Reference[]): Operation {
  const { table, selectable } = visible;
  const key = selectable.filter(({ name }) => table.primaryKey.includes(name));
  return {
    ...about("replace", visible),
    parameters: [
      ...referToRowFilters(table.name, key),
      ...referToShared("select", "columns", "preferUpdate", "idempotencyKey"),
      ...profile,
    ],
    requestBody: { required: true, content: { "application/json": { schema: referToRow(table.name, "insert") } } },
    responses: { 200: referToRows(visible), 201: referToRows(visible), 204: REFER_TO_DONE, ...REFUSES.change },
  };
}

function update(visible: VisibleTable, profile: readonly Reference[]): Operation {
  const row = referToRow(visible.table.name, "update");
  return {
    ...about("update", visible),
    parameters: [
      ...filters(visible),
      ...referToShared("select", "columns", "preferUpdate", "idempotencyKey"),
      ...profile,
    ],
    requestBody: {
      required: true,
      content: { "application/json": { schema: row }, "application/x-www-form-urlencoded": { schema: row } },
    },
    responses: { ...changed(visible), ...REFUSES.change },
  };
}

function remove(visible: VisibleTable, profile: readonly Reference[]): Operation {
  return {
    ...about("delete", visible),
    parameters: [...filters(visible), ...referToShared("select", "preferDelete", "idempotencyKey"), ...profile],
    responses: { ...changed(visible), ...REFUSES.remove },
  };
}

function about(verb: string, { table }: VisibleTable): Operation {
  const { summary, description } = readComment(table.comment);
  return { operationId: `${verb}_${componentKey(table.name)}`, tags: [table.name], summary, description };
}

function filters({ table, selectable }: VisibleTable): Reference[] {
  return [...referToRowFilters(table.name, selectable), ...referToShared("and", "or")];
}

function changed(visible: VisibleTable): object {
  return visible.verbs.has("select") ? { 200: referToRows(visible), 204: REFER_TO_DONE } : { 204: REFER_TO_DONE };
}

/** PUT writes the one row that its key names, whether it is there or not: the key is filtered by and written. */
function canReplace({ table, verbs, selectable, insertable, updatable }: VisibleTable): boolean {
  const isUsable = (name: string) => {
    const column = table.columns.get(name)!;
    return column.identity !== "always" && [selectable, insertable, updatable].every((list) => list.includes(column));
  };
  const { primaryKey } = table;
  return verbs.has("insert") && verbs.has("update") && primaryKey.length > 0 && primaryKey.every(isUsable);
}
