import { ApiError } from "../../engine/errors.ts";
import { readMediaRanges } from "../media-range.ts";

export type Form = "openapi-3.1" | "swagger-2.0";
export type Negotiated = { readonly form: Form; readonly contentType: string };

type Wanted = { readonly type: string; readonly version: string | null };

const OPENAPI = "application/vnd.oai.openapi+json";
/** What PostgREST calls its document, which is Swagger 2.0. */
const POSTGREST = "application/openapi+json";

/**
 * A client that names no type, or one of PostgREST's, gets what PostgREST offers: its clients can read nothing else. One that names
 * OpenAPI's own type, and a browser, gets OpenAPI 3.1. A version that is asked for is the one that is given.
 */
export function negotiateForm(accept: string | undefined): Negotiated {
  const ranges = readMediaRanges(accept || "*/*").filter(({ quality }) => quality > 0);
  const isBrowser = ranges.some(({ type }) => type === "text/html");
  for (const wanted of ranges.map(toWanted)) {
    const form = wanted.type === "*/*" && isBrowser ? "openapi-3.1" : formOf(wanted);
    if (form) return { form, contentType: contentTypeOf(form, wanted) };
  }
  const asked = ranges.map(({ type }) => type).join(", ");
  throw new ApiError(406, "PGRST107", `None of these media types are available: ${asked}`);
}

function formOf({ type, version }: Wanted): Form | null {
  switch (type) {
    case OPENAPI:
      return versioned(version ?? "3.1");
    case POSTGREST:
      return versioned(version ?? "2.0");
    case "application/json":
    case "application/*":
    case "*/*":
      return "swagger-2.0";
    default:
      return null;
  }
}

function versioned(version: string): Form | null {
  if (/^2(\.0)?$/.test(version)) return "swagger-2.0";
  return /^3(\.1(\.\d+)?)?$/.test(version) ? "openapi-3.1" : null;
}

function contentTypeOf(form: Form, { type }: Wanted): string {
  const name =
    form === "openapi-3.1"
      ? `${type === POSTGREST ? POSTGREST : OPENAPI};version=3.1`
      : type === OPENAPI
        ? `${OPENAPI};version=2.0`
        : POSTGREST;
  return `${name}; charset=utf-8`;
}

/** `application/vnd.oai.openapi+json;version="3.1"` */
function toWanted({ type: text }: { readonly type: string }): Wanted {
  const [type = "", ...parameters] = text.toLowerCase().split(";");
  const version = parameters.find((parameter) => parameter.startsWith("version="));
  return { type, version: version?.slice("version=".length).replace(/^"(.*)"$/, "$1") ?? null };
}
