import type { Catalog } from "../../../engine/catalog/catalog.ts";
import type { Viewer, VisibleTable } from "../viewer.ts";
import { componentKey, type Reference, referTo } from "./component-key.ts";
import { referToRow } from "./row-schemas.ts";

const HEADERS = {
  "Content-Range": referTo("headers", "contentRange"),
  "Preference-Applied": referTo("headers", "preferenceApplied"),
};

/** The answer without a body, the same for all. */
export const DONE: readonly [string, object] = [
  "done",
  { description: "Done, and nothing to be told", headers: HEADERS },
];
export const REFER_TO_DONE = referTo("responses", DONE[0]);

const READ_HEADERS = { ...HEADERS, Link: referTo("headers", "link") };
const WRITTEN = { description: "Written", headers: { ...HEADERS, Location: referTo("headers", "location") } };

type Surroundings = { readonly viewer: Viewer; readonly catalog: Catalog };

/** Rows as they are sent; who may not select gets none. */
export function* tableResponses(visible: VisibleTable, surroundings: Surroundings): Generator<[string, object]> {
  const { table, verbs } = visible;
  if (!verbs.has("select")) return;
  const content = rowsContent(visible, surroundings);
  yield [`rows.${componentKey(table.name)}`, { description: "The rows", headers: READ_HEADERS, content }];
  if (!verbs.has("insert")) return;
  yield [
    `written.${componentKey(table.name)}`,
    { ...WRITTEN, description: "Written; with the rows if asked for", content },
  ];
}

export function referToRows({ table }: VisibleTable): Reference {
  return referTo("responses", `rows.${componentKey(table.name)}`);
}

export function referToWritten({ table, verbs }: VisibleTable): object {
  return verbs.has("select") ? referTo("responses", `written.${componentKey(table.name)}`) : WRITTEN;
}

/** What is null in a row is not there. */
const WITHOUT_NULLS = {
  "application/vnd.pgrst.array+json;nulls=stripped": { schema: { type: "array", items: { type: "object" } } },
  "application/vnd.pgrst.object+json;nulls=stripped": { schema: { type: "object" } },
};

function rowsContent({ table }: VisibleTable, { viewer, catalog }: Surroundings): object {
  const row = referToRow(table.name, "row");
  const ownTypes = catalog.mediaHandlers
    .filter(({ mediaType, routine, table: only }) => {
      const isForRows = routine.kind === "aggregate" && mediaType !== "*/*" && viewer.mayCall(routine);
      return isForRows && (!only || catalog.findTable(only) === table);
    })
    .map(({ mediaType }) => [mediaType, { schema: { type: "string" } }]);
  return {
    "application/json": { schema: { type: "array", items: row } },
    "application/vnd.pgrst.object+json": { schema: row },
    ...WITHOUT_NULLS,
    "text/csv": { schema: { type: "string" } },
    ...(catalog.extensions.has("postgis") && { "application/geo+json": { schema: { type: "object" } } }),
    ...Object.fromEntries(ownTypes),
  };
}
