import { HttpError } from "../../http/http-error.ts";
import { readMediaRanges } from "../http/content-negotiation.ts";
import { makeSwaggerDocument } from "./swagger/document.ts";
import { makeTableDocument } from "./table/document.ts";
import type { TableDocumentOptions } from "./visible-schema.ts";
import { type DocumentCache, type OpenApiDocument, type WrittenDocument, writeDocument } from "./written-document.ts";

const OPENAPI = "application/vnd.oai.openapi+json";
/** PostgREST's media type for its Swagger 2.0 document. */
const POSTGREST = "application/openapi+json";

type OpenApiResponse = {
  readonly contentType: string;
  readonly document: WrittenDocument;
};

const DOCUMENTS: Readonly<Record<DocumentFormat, (subject: TableDocumentOptions) => Promise<OpenApiDocument>>> = {
  "openapi-3.1": makeTableDocument,
  "swagger-2.0": makeSwaggerDocument,
};

/** The document at `GET /rest/v1/`. */
export async function describeTables(
  { accept, ...subject }: TableDocumentOptions & { readonly accept: string | undefined },
  documents: DocumentCache,
): Promise<OpenApiResponse> {
  const { format: form, contentType } = negotiateFormat(accept);
  const { catalog, role, schema, tables, mode, serverUrl, securityActive, version } = subject;
  const reader = mode === "follow-privileges" ? role : null;
  const key = JSON.stringify([form, schema, tables, mode, reader, serverUrl, securityActive, version]);
  const make = async () => writeDocument(await DOCUMENTS[form](subject));
  return { contentType, document: await documents.get(key, catalog.version, make) };
}

type DocumentFormat = "openapi-3.1" | "swagger-2.0";
type NegotiatedDocument = { readonly format: DocumentFormat; readonly contentType: string };

type AcceptedType = { readonly type: string; readonly version: string | null };

/**
 * Clients without a type, or with one of PostgREST's, get Swagger 2.0 as from PostgREST. Browsers and clients with
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

/** `application/vnd.oai.openapi+json;version="3.1"` */
function toAcceptedType({ type: text }: { readonly type: string }): AcceptedType {
  const [type = "", ...parameters] = text.toLowerCase().split(";");
  const version = parameters.find((parameter) => parameter.startsWith("version="));
  return { type, version: version?.slice("version=".length).replace(/^"(.*)"$/, "$1") ?? null };
}
