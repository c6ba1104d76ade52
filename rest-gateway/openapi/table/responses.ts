import type { Catalog } from "../../../engine/catalog/catalog.ts";
import { type ComponentReference, componentKey, componentRef } from "../json-schema.ts";
import type { VisibleSchema, VisibleTable } from "../visible-schema.ts";
import { rowRef } from "./row-schemas.ts";

const ERROR_DESCRIPTIONS = {
  300: "The request is ambiguous; `details` lists the candidates",
  400: "The request is invalid, or Postgres rejected a value",
  401: "The API key or token is missing or invalid, or anonymous callers may not do this",
  403: "The role lacks a privilege",
  404: "Not found, or no function takes these arguments",
  406: "No accepted media type is available, or a single row was requested and there is not exactly one",
  409: "A unique or foreign key is violated",
  413: "The body is too large",
  416: "The requested range has no rows",
  422: "The Idempotency-Key was used for a different request",
  default: "Another error",
};
export const RESPONSE_HEADERS = {
  contentRange: {
    description: "The range of the rows, and their total if a count was requested",
    schema: { type: "string", examples: ["0-24/3573458", "*/0"] },
  },
  link: {
    description: "The next and the first page, for requests with a cursor",
    schema: { type: "string", examples: ['</films?limit=20&cursor=…>; rel="next"'] },
  },
  location: {
    description: "The path of the inserted row",
    schema: { type: "string", examples: ["/films?id=eq.1"] },
  },
  preferenceApplied: { description: "The preferences that were applied", schema: { type: "string" } },
};

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

export type TableErrorStatus = Exclude<keyof typeof ERROR_DESCRIPTIONS, "default">;

export function* tableErrorResponses(): Generator<[string, object]> {
  const content = { "application/json": { schema: componentRef("schemas", "rest.error") } };
  for (const [status, description] of Object.entries(ERROR_DESCRIPTIONS))
    yield [`error.${status}`, { description, content }];
}

/** References to the responses of these errors and of any other one. */
export function tableErrorRefs(...statuses: readonly TableErrorStatus[]): Readonly<Record<string, ComponentReference>> {
  return Object.fromEntries(
    [...statuses, "default"].map((status) => [status, componentRef("responses", `error.${status}`)]),
  );
}
