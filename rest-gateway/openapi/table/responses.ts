import type { Catalog } from "../../../engine/catalog/catalog.ts";
import {
  type ComponentReference,
  componentKey,
  componentRef,
  type ErrorStatusOf,
  errorRefs,
  errorResponses,
} from "../components.ts";
import type { VisibleSchema, VisibleTable } from "../visible-schema.ts";
import components from "./components.json" with { type: "json" };
import { rowRef } from "./row-schemas.ts";

const COMMON_HEADERS = {
  "Content-Range": componentRef("headers", "contentRange"),
  "Preference-Applied": componentRef("headers", "preferenceApplied"),
};

/** The response without a body, shared by all operations. */
export const EMPTY_RESPONSE: readonly [string, object] = [
  "done",
  { description: "Done; no content", headers: COMMON_HEADERS },
];
export const EMPTY_RESPONSE_REF = componentRef("responses", EMPTY_RESPONSE[0]);

const READ_HEADERS = { ...COMMON_HEADERS, Link: componentRef("headers", "link") };
const WRITTEN_RESPONSE = {
  description: "Written",
  headers: { ...COMMON_HEADERS, Location: componentRef("headers", "location") },
};

type ResponseContext = { readonly viewer: VisibleSchema; readonly catalog: Catalog };

/** The responses with rows; none for roles that may not select. */
export function* tableResponses(visible: VisibleTable, context: ResponseContext): Generator<[string, object]> {
  const { table, verbs } = visible;
  if (!verbs.has("select")) return;
  const content = rowsContent(visible, context);
  yield [`rows.${componentKey(table.name)}`, { description: "The rows", headers: READ_HEADERS, content }];
  if (!verbs.has("insert")) return;
  yield [
    `written.${componentKey(table.name)}`,
    { ...WRITTEN_RESPONSE, description: "Written; with the rows if requested", content },
  ];
}

export function rowsRef({ table }: VisibleTable): ComponentReference {
  return componentRef("responses", `rows.${componentKey(table.name)}`);
}

export function writtenRef({ table, verbs }: VisibleTable): object {
  return verbs.has("select") ? componentRef("responses", `written.${componentKey(table.name)}`) : WRITTEN_RESPONSE;
}

/** With `nulls=stripped`, rows have no null members. */
const WITHOUT_NULLS = {
  "application/vnd.pgrst.array+json;nulls=stripped": { schema: { type: "array", items: { type: "object" } } },
  "application/vnd.pgrst.object+json;nulls=stripped": { schema: { type: "object" } },
};

function rowsContent({ table }: VisibleTable, { viewer, catalog }: ResponseContext): object {
  const row = rowRef(table.name, "row");
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

export type TableErrorStatus = ErrorStatusOf<typeof components.errors>;

export function tableErrorResponses(): Generator<[string, object]> {
  return errorResponses(components.errors, componentRef("schemas", "rest.error"));
}

/** References to the responses of these errors and of any other one. */
export function tableErrorRefs(...statuses: readonly TableErrorStatus[]): ReturnType<typeof errorRefs> {
  return errorRefs([...statuses, "default"]);
}
