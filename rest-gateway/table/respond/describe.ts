import type { Caller } from "#accounts/identity";
import type { Catalog, CatalogTable, Routine } from "#catalog";
import type { Config } from "#config";
import {
  type GatewayRequest,
  type GatewayResponse,
  HttpError,
  type ResponseBody,
  readMediaRanges,
  TABLE_PREFIX,
} from "#http";
import { findTable, routineNotFound } from "#planner/find-target";
import type { CallArgument } from "#planner/intent";
import {
  DocumentCache,
  documentResponse,
  makeTableDocument,
  type OpenApiDocument,
  type PrintedDocument,
  printDocument,
} from "#rest-gateway/openapi";
import type { TableDocumentOptions } from "#rest-gateway/openapi/schemas";
import { makeSwaggerDocument } from "#rest-gateway/openapi/swagger";
import type { TableRequest, TableResource } from "../parse/request.ts";
import { encodeHeaders } from "./respond.ts";

const WITHOUT_ARGUMENTS: CallArgument = { kind: "query", values: [] };

type DescribeOptions = Pick<Config, "openapiMode" | "openapiProxyUrl" | "openapiSecurity" | "requireApiKey">;
type DescribeRequest = {
  readonly request: GatewayRequest;
  readonly parsed: TableRequest;
  /** The tables; null for all. */
  readonly tables: readonly string[] | null;
  readonly caller: Caller;
  readonly catalog: Catalog;
};

/** Makes the root resource: an OpenAPI document of the schema, or of some of its tables, as the caller may see it. */
export function makeRootDescription({ openapiMode, openapiProxyUrl, openapiSecurity, requireApiKey }: DescribeOptions) {
  const documents = new DocumentCache();
  return async ({
    request,
    parsed,
    tables,
    caller,
    catalog,
  }: DescribeRequest): Promise<GatewayResponse<ResponseBody>> => {
    request.stages.enter("plan");
    const { schema } = parsed.profile;
    const names =
      tables && [...new Set(tables.map((name) => findTable({ schema, name }, catalog, caller.role).name))].sort();
    request.stages.enter("run");
    const { contentType, document } = await describeTables(
      {
        catalog,
        role: caller.role,
        schema,
        tables: names,
        mode: openapiMode === "ignore-privileges" ? "ignore-privileges" : "follow-privileges",
        serverUrl: openapiProxyUrl ?? TABLE_PREFIX,
        securityActive: openapiSecurity,
        requireApiKey,
        version: "1",
        accept: request.headers.accept,
      },
      documents,
    );
    request.stages.enter("respond");
    const profile = parsed.profile.negotiated ? { "Content-Profile": parsed.profile.schema } : {};
    const headers = { "Content-Type": contentType, ...profile, Vary: "Accept, Authorization, apikey" };
    return encodeHeaders(await documentResponse(document, request, headers));
  };
}

type CatalogView = { readonly schema: string; readonly catalog: Catalog; readonly role: string };

/** Returns the methods that the resource supports, `OPTIONS,GET,HEAD,POST`. Throws if it does not exist. */
export function allowedMethods(
  { kind, name }: TableResource & { name?: string },
  { schema, catalog, role }: CatalogView,
): string {
  if (kind === "root" || name === undefined) return "OPTIONS,GET,HEAD";
  if (kind === "table") return tableMethods(findTable({ schema, name }, catalog, role));
  const [routine] = catalog.schemas.get(schema)?.routines.get(name) ?? [];
  if (!routine)
    throw routineNotFound({ target: { schema, name }, argument: WITHOUT_ARGUMENTS, overloads: [] }, catalog, role);
  return routineMethods(routine);
}

function tableMethods({ insertable, updatable, deletable, primaryKey }: CatalogTable): string {
  const methods = ["OPTIONS", "GET", "HEAD"];
  if (insertable) methods.push("POST");
  if (insertable && updatable && primaryKey.length > 0) methods.push("PUT");
  if (updatable) methods.push("PATCH");
  if (deletable) methods.push("DELETE");
  return methods.join(",");
}

/** Returns the methods of a function. Following a link must not call one that changes data. */
function routineMethods({ volatility }: Routine): string {
  return volatility === "volatile" ? "OPTIONS,POST" : "OPTIONS,GET,HEAD,POST";
}

const OPENAPI = "application/vnd.oai.openapi+json";
/** PostgREST's media type for its Swagger 2.0 document. */
const POSTGREST = "application/openapi+json";

type OpenApiResponse = {
  readonly contentType: string;
  readonly document: PrintedDocument;
};

const DOCUMENTS: Readonly<Record<DocumentFormat, (subject: TableDocumentOptions) => Promise<OpenApiDocument>>> = {
  "openapi-3.1": makeTableDocument,
  "swagger-2.0": makeSwaggerDocument,
};

/** Returns the document at `GET /rest/v1/`. */
export async function describeTables(
  { accept, ...subject }: TableDocumentOptions & { readonly accept: string | undefined },
  documents: DocumentCache,
): Promise<OpenApiResponse> {
  const { format: form, contentType } = negotiateFormat(accept);
  const { catalog, role, schema, tables, mode, serverUrl, securityActive, requireApiKey, version } = subject;
  const reader = mode === "follow-privileges" ? role : null;
  const key = JSON.stringify([form, schema, tables, mode, reader, serverUrl, securityActive, requireApiKey, version]);
  const make = async () => printDocument(await DOCUMENTS[form](subject));
  return { contentType, document: await documents.get(key, catalog.version, make) };
}

type DocumentFormat = "openapi-3.1" | "swagger-2.0";
type NegotiatedDocument = { readonly format: DocumentFormat; readonly contentType: string };

type AcceptedType = { readonly type: string; readonly version: string | null };

/**
 * Chooses the format. Clients without a type, or with one of PostgREST's, get Swagger 2.0 as from PostgREST. Browsers and clients with
 * OpenAPI's own type get OpenAPI 3.1. A version in the media type takes precedence.
 */
export function negotiateFormat(accept: string | undefined): NegotiatedDocument {
  const ranges = readMediaRanges(accept || "*/*").filter(({ quality }) => quality > 0);
  const isBrowser = ranges.some(({ type }) => type === "text/html");
  for (const wanted of ranges.map(toAcceptedType)) {
    const form = wanted.type === "*/*" && isBrowser ? "openapi-3.1" : formatOf(wanted);
    if (form) return { format: form, contentType: contentTypeOf(form, wanted) };
  }
  const accepted = ranges.map(({ type }) => type).join(", ");
  throw new HttpError(406, "PGRST107", `None of these media types are available: ${accepted}`);
}

function formatOf({ type, version }: AcceptedType): DocumentFormat | null {
  switch (type) {
    case OPENAPI:
      return formatOfVersion(version ?? "3.1");
    case POSTGREST:
      return formatOfVersion(version ?? "2.0");
    case "application/json":
    case "application/*":
    case "*/*":
      return "swagger-2.0";
    default:
      return null;
  }
}

function formatOfVersion(version: string): DocumentFormat | null {
  if (/^2(\.0)?$/.test(version)) return "swagger-2.0";
  return /^3(\.1(\.\d+)?)?$/.test(version) ? "openapi-3.1" : null;
}

function contentTypeOf(form: DocumentFormat, { type }: AcceptedType): string {
  const name =
    form === "openapi-3.1"
      ? `${type === POSTGREST ? POSTGREST : OPENAPI};version=3.1`
      : type === OPENAPI
        ? `${OPENAPI};version=2.0`
        : POSTGREST;
  return `${name}; charset=utf-8`;
}

/** Parses `application/vnd.oai.openapi+json;version="3.1"`. */
function toAcceptedType({ type: text }: { readonly type: string }): AcceptedType {
  const [type = "", ...parameters] = text.toLowerCase().split(";");
  const version = parameters.find((parameter) => parameter.startsWith("version="));
  return { type, version: version?.slice("version=".length).replace(/^"(.*)"$/, "$1") ?? null };
}
