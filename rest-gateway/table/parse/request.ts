import type { IncomingHttpHeaders } from "node:http";
import { decodeSchemaName, HttpError, isReadMethod, profileHeader } from "#http";
import { cursorNotPossible } from "#planner";
import type {
  CallArgument,
  Intent,
  NestedRows,
  ResponseFormat,
  RowPayload,
  RowRange,
  RowSelection,
  UpdateIntent,
  WithEmbedPath,
} from "#planner/intent";
import { EMPTY_PAYLOAD, type ParsedBody, parseArgument, parseNestedRows, parseRows } from "./body.ts";
import { type PreferenceRules, type Preferences, parseAccept, parsePreferences } from "./headers.ts";
import { memoizeParser } from "./memoize-parser.ts";
import { parseQueryParameters, parseRanges, type QueryParameters } from "./query-parameters.ts";
import { decodePercent, parseQueryString, readTableApiKey, type UrlParameter, withoutApiKey } from "./query-string.ts";
import { parseOperators } from "./update-operators.ts";

const METHODS_BY_RESOURCE: Readonly<Record<TableResource["kind"], readonly string[]>> = {
  root: ["OPTIONS", "GET", "HEAD"],
  table: ["OPTIONS", "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"],
  function: ["OPTIONS", "GET", "HEAD", "POST"],
};

const pathSegments = memoizeParser((path: string) => path.replace(/^\//, "").split("/").map(decodePercent));

const RETURN_PREFERENCES = { representation: "rows", "headers-only": "headers", minimal: "nothing" } as const;
const CONFLICT_RESOLUTIONS = { "merge-duplicates": "merge", "ignore-duplicates": "ignore" } as const;

/** A request of the table interface before it is parsed. */
export type RawTableRequest = {
  readonly method: string;
  /** The path after the prefix of the interface, percent-encoded. */
  readonly path: string;
  readonly rawQuery: string;
  readonly headers: IncomingHttpHeaders;
  readonly content: ParsedBody;
};

/** The settings and schemas that parsing depends on. */
export type TableParseSettings = PreferenceRules & {
  readonly schemas: readonly string[];
  readonly rootFunction: string | null;
  readonly describesItself: boolean;
};

/** A parsed request of the table interface. */
export type TableRequest = {
  readonly method: string;
  readonly action: TableRequestAction;
  readonly profile: SchemaProfile;
  readonly preferences: Preferences;
  /** The accepted formats, best first. */
  readonly accept: readonly ResponseFormat[];
  readonly parameters: readonly UrlParameter[];
  /** The parameters sorted by name, if they are cached. */
  readonly canonicalQuery?: string;
};

type TableRequestAction =
  | { readonly kind: "statement"; readonly intent: Intent }
  /** A request for the methods of a resource. */
  | { readonly kind: "options"; readonly resource: TableResource }
  /** A request for the OpenAPI document of these tables; null for all. */
  | { readonly kind: "describe"; readonly tables: readonly string[] | null };

/** Returns true if the body of a request with that method is read. */
export function hasRequestBody(method: string): boolean {
  return method === "POST" || method === "PATCH" || method === "PUT";
}

/** Parses the resource and the schema of a request, even if its method is not allowed. */
export function parseTableTarget(
  { method, path, headers }: Pick<RawTableRequest, "method" | "path" | "headers">,
  settings: TableParseSettings,
): { readonly resource: TableResource; readonly profile: SchemaProfile } {
  const resource = parseResource(path, settings);
  return { resource, profile: parseProfile(profileHeader(method, headers), settings.schemas) };
}

export function parseTableRequest(
  { method, path, rawQuery, headers, content }: RawTableRequest,
  settings: TableParseSettings,
): TableRequest {
  const { resource, profile } = parseTableTarget({ method, path, headers }, settings);
  checkMethod(resource, method);
  const parameters = withoutApiKey(parseQueryString(rawQuery), readTableApiKey(headers, rawQuery));
  const conditions =
    resource.kind === "root" ? parameters.filter(([name]) => name !== DESCRIBED_TABLE_PARAMETER) : parameters;
  const query = parseQueryParameters(conditions, {
    withArguments: resource.kind === "function" && isReadMethod(method),
  });
  const ranges = parseRanges(query.bounds, { method, range: headers.range });
  const preferences = parsePreferences(headerOf("prefer"), settings);
  const accept = parseAccept(headers.accept);
  return { method, action: toAction(), profile, preferences, accept, parameters };

  function toAction(): TableRequestAction {
    if (method === "OPTIONS") return { kind: "options", resource };
    if (resource.kind === "root") return { kind: "describe", tables: describedTables(parameters) };
    const target = { schema: profile.schema, name: resource.name };
    const intent = toIntent(resource.kind, { method, target, query, ranges, preferences, content });
    return { kind: "statement", intent };
  }

  /** Returns a header; Node joins the values of repeated ones. */
  function headerOf(name: string): string | undefined {
    return headers[name] as string | undefined;
  }
}

/** The parameter of `/?table=films&table=actors`. */
const DESCRIBED_TABLE_PARAMETER = "table";

function describedTables(parameters: readonly UrlParameter[]): readonly string[] | null {
  const names = parameters.flatMap(([name, value]) => (name === DESCRIBED_TABLE_PARAMETER ? value : []));
  return names.length > 0 ? names : null;
}

export type TableResource =
  | { readonly kind: "table" | "function"; readonly name: string }
  /** The interface itself, described in OpenAPI. */
  | { readonly kind: "root" };

type RootSettings = { readonly rootFunction: string | null; readonly describesItself: boolean };

/** Parses `/films`, `/rpc/add`, `/`. */
export function parseResource(path: string, { rootFunction, describesItself }: RootSettings): TableResource {
  const [first = "", second, ...more] = pathSegments(path);
  if (first === "" && second === undefined) {
    if (!describesItself) throw new HttpError(404, "PGRST126", "Root endpoint metadata is disabled");
    return rootFunction === null ? { kind: "root" } : { kind: "function", name: rootFunction };
  }
  if (second === undefined) return { kind: "table", name: first };
  if (first === "rpc" && more.length === 0) return { kind: "function", name: second };
  throw new HttpError(404, "PGRST125", "Invalid path specified in request URL");
}

export function checkMethod(resource: TableResource, method: string): void {
  const methods = METHODS_BY_RESOURCE[resource.kind];
  if (methods.includes(method)) return;
  const headers = { Allow: methods.join(",") };
  if (resource.kind === "function")
    throw new HttpError(405, "PGRST101", `Cannot use the ${method} method on RPC`, { headers });
  throw new HttpError(405, "PGRST117", `Unsupported HTTP method: ${method}`, { headers });
}

type SchemaProfile = {
  readonly schema: string;
  /** True if the response has the header `Content-Profile`. */
  readonly negotiated: boolean;
};

/** Returns the schema that the profile header selects; the first schema without the header. */
export function parseProfile(header: string | undefined, schemas: readonly string[]): SchemaProfile {
  if (header === undefined) return { schema: schemas[0]!, negotiated: schemas.length > 1 };
  const schema = decodeSchemaName(header, schemas);
  if (schemas.includes(schema)) return { schema, negotiated: true };
  throw new HttpError(406, "PGRST106", `Invalid schema: ${schema}`, {
    hint: `Only the following schemas are exposed: ${schemas.join(", ")}`,
  });
}

function operatorsNotNested(): HttpError {
  return new HttpError(400, "PGRST127", "Feature not implemented", {
    details: "A nested update takes values, and no operators.",
  });
}

type ParsedParts = {
  readonly method: string;
  readonly target: Intent["target"];
  readonly query: QueryParameters;
  readonly ranges: readonly WithEmbedPath<RowRange>[];
  readonly preferences: Preferences;
  readonly content: ParsedBody;
};

function toSelection(
  { select, conditions, having, distinct, orders }: QueryParameters,
  ranges: ParsedParts["ranges"],
): RowSelection {
  const groups = { ...(having.length > 0 && { having }), ...(distinct.length > 0 && { distinct }) };
  return { select, conditions, ...groups, orders, ranges };
}

/** Combines the parsed parts, by the method. */
function toIntent(kind: "table" | "function", parsed: ParsedParts): Intent {
  const { method, target, query, ranges, preferences, content } = parsed;
  const { columns, page } = query;
  const isRead = isReadMethod(method);
  if (page !== null && !isRead) throw cursorNotPossible(`${method} has no pages: only GET and HEAD have.`);
  const common = { target, selection: toSelection(query, ranges), count: preferences.count };
  if (kind === "function")
    return { kind: "call", ...common, page, argument: toArgument(), readOnly: method !== "POST" };

  if (isRead) return { kind: "read", ...common, page };

  const write = { ...common, returned: RETURN_PREFERENCES[preferences.return ?? "minimal"] };
  const missingAsDefault = preferences.missing === "default";
  switch (method) {
    case "POST": {
      const insert = { kind: "insert", ...write, missingAsDefault, upsert: toUpsert(), single: false } as const;
      if (preferences.nested !== "insert") return { ...insert, payload: toRows() };
      return { ...insert, payload: EMPTY_PAYLOAD, nested: parseNestedRows(content, columns) };
    }
    case "PUT": {
      const upsert = { resolution: "merge", onConflict: null } as const;
      const replacement = { kind: "insert", ...write, missingAsDefault: false, upsert, single: true } as const;
      const nested = toNestedUpdate();
      if (nested === null) return { ...replacement, payload: toRows() };
      return { ...replacement, payload: EMPTY_PAYLOAD, nested };
    }
    case "PATCH": {
      const nested = toNestedUpdate();
      if (nested === null) return { kind: "update", ...write, ...toUpdate(), missingAsDefault };
      return { kind: "update", ...write, payload: EMPTY_PAYLOAD, missingAsDefault, nested, returnsUnchangedRows: true };
    }
    default:
      return { kind: "delete", ...write };
  }

  function toNestedUpdate(): NestedRows | null {
    const { nested, removed } = preferences;
    if (nested === null || nested === "insert") return null;
    if (preferences.operators) throw operatorsNotNested();
    const rows = parseNestedRows(content, method === "PUT" ? null : columns);
    if (rows.isList) throw new HttpError(400, "PGRST102", `'Prefer: nested=${nested}' takes one object`);
    const update = nested === "replace" ? ({ kind: nested, removes: removed ?? "delete" } as const) : { kind: nested };
    return { ...rows, update };
  }

  function toArgument(): CallArgument {
    return method === "POST" ? parseArgument(content, columns) : { kind: "query", values: query.arguments };
  }

  /** Returns the rows of a PUT, which replaces the whole row, so `columns` does not apply. */
  function toRows(): RowPayload {
    return parseRows(content, method === "PUT" ? null : columns);
  }

  /** Returns the changes. As in PostgREST, one object changes all rows that meet the conditions. */
  function toUpdate(): Pick<UpdateIntent, "payload" | "key" | "operators"> {
    const payload = toRows();
    const key = payload.isArray && query.onConflict !== null ? { key: query.onConflict } : null;
    return { ...(preferences.operators ? parseOperators(payload) : { payload }), ...key };
  }

  function toUpsert() {
    const { resolution } = preferences;
    return resolution && { resolution: CONFLICT_RESOLUTIONS[resolution], onConflict: query.onConflict };
  }
}
