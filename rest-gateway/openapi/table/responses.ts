import type { Catalog } from "../../../engine/catalog/catalog.ts";
import { type ComponentReference, componentKey, componentRef } from "../json-schema.ts";
import type { VisibleSchema, VisibleTable } from "../visible-schema.ts";
import { rowRef } from "./row-schemas.ts";

const ERROR_DESCRIPTIONS = {
  300: "What was asked for can mean several things; `details` lists them",
  400: "The request cannot be read, or Postgres refused a value",
  401: "There is no valid key or token, or strangers may not do this",
  403: "The role may not do this",
  404: "There is nothing of that name, or no function with such arguments",
  406: "The answer cannot have the media type asked for, or one row was asked for and there are more or none",
  409: "A unique or foreign key is violated",
  413: "The body is too large",
  416: "There are no rows in that range",
  422: "The Idempotency-Key was used for another request",
  default: "Something went wrong",
};
export const RESPONSE_HEADERS = {
  contentRange: {
    description: "Which rows these are, and of how many when a count was asked for",
    schema: { type: "string", examples: ["0-24/3573458", "*/0"] },
  },
  link: {
    description: "Where the pages behind this one and the first one are, when it was asked for by a cursor",
    schema: { type: "string", examples: ['</films?limit=20&cursor=…>; rel="next"'] },
  },
  location: {
    description: "Where the row that was written is",
    schema: { type: "string", examples: ["/films?id=eq.1"] },
  },
  preferenceApplied: { description: "The preferences that were heard", schema: { type: "string" } },
};

const COMMON_HEADERS = {
  "Content-Range": componentRef("headers", "contentRange"),
  "Preference-Applied": componentRef("headers", "preferenceApplied"),
};

/** The answer without a body, the same for all. */
export const EMPTY_RESPONSE: readonly [string, object] = [
  "done",
  { description: "Done, and nothing to be told", headers: COMMON_HEADERS },
];
export const EMPTY_RESPONSE_REF = componentRef("responses", EMPTY_RESPONSE[0]);

const READ_HEADERS = { ...COMMON_HEADERS, Link: componentRef("headers", "link") };
const WRITTEN_RESPONSE = {
  description: "Written",
  headers: { ...COMMON_HEADERS, Location: componentRef("headers", "location") },
};

type ResponseContext = { readonly viewer: VisibleSchema; readonly catalog: Catalog };

/** Rows as they are sent; who may not select gets none. */
export function* tableResponses(visible: VisibleTable, context: ResponseContext): Generator<[string, object]> {
  const { table, verbs } = visible;
  if (!verbs.has("select")) return;
  const content = rowsContent(visible, context);
  yield [`rows.${componentKey(table.name)}`, { description: "The rows", headers: READ_HEADERS, content }];
  if (!verbs.has("insert")) return;
  yield [
    `written.${componentKey(table.name)}`,
    { ...WRITTEN_RESPONSE, description: "Written; with the rows if asked for", content },
  ];
}

export function rowsRef({ table }: VisibleTable): ComponentReference {
  return componentRef("responses", `rows.${componentKey(table.name)}`);
}

export function writtenRef({ table, verbs }: VisibleTable): object {
  return verbs.has("select") ? componentRef("responses", `written.${componentKey(table.name)}`) : WRITTEN_RESPONSE;
}

/** What is null in a row is not there. */
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

/** Those that can occur, and whatever else may go wrong. */
export function tableErrorRefs(...statuses: readonly TableErrorStatus[]): Readonly<Record<string, ComponentReference>> {
  return Object.fromEntries(
    [...statuses, "default"].map((status) => [status, componentRef("responses", `error.${status}`)]),
  );
}
