import { ApiError } from "../../engine/errors.ts";

export type Form = "openapi-3.1" | "swagger-2.0";
export type Negotiated = { readonly form: Form; readonly contentType: string };

type Range = {
  readonly text: string;
  readonly type: string;
  readonly version: string | null;
  readonly quality: number;
  readonly precision: number;
};

const OPENAPI = "application/vnd.oai.openapi+json";
/** What PostgREST calls its document, which is Swagger 2.0. */
const POSTGREST = "application/openapi+json";

/**
 * Who names a type that PostgREST offers gets what PostgREST offers: its clients can read nothing else. Who names
 * OpenAPI's own type, or takes anything, gets OpenAPI 3.1. A version that is asked for is the one that is given.
 */
export function negotiateForm(accept: string | undefined): Negotiated {
  const ranges = parseAccept(accept || "*/*");
  for (const range of ranges) {
    const form = formOf(range);
    if (form) return { form, contentType: contentTypeOf(form, range) };
  }
  const asked = ranges.map(({ text }) => text).join(", ");
  throw new ApiError(406, "PGRST107", `None of these media types are available: ${asked}`);
}

function formOf({ type, version }: Range): Form | null {
  switch (type) {
    case OPENAPI:
      return versioned(version ?? "3.1");
    case POSTGREST:
      return versioned(version ?? "2.0");
    case "application/json":
      return "swagger-2.0";
    case "application/*":
    case "*/*":
      return "openapi-3.1";
    default:
      return null;
  }
}

function versioned(version: string): Form | null {
  if (/^2(\.0)?$/.test(version)) return "swagger-2.0";
  return /^3(\.1(\.\d+)?)?$/.test(version) ? "openapi-3.1" : null;
}

function contentTypeOf(form: Form, { type }: Range): string {
  const name =
    form === "openapi-3.1"
      ? `${type === POSTGREST ? POSTGREST : OPENAPI};version=3.1`
      : type === OPENAPI
        ? `${OPENAPI};version=2.0`
        : POSTGREST;
  return `${name}; charset=utf-8`;
}

/** `application/vnd.oai.openapi+json;version="3.1", application/json;q=0.5`: the most wanted first; of equals the one that says more. */
function parseAccept(accept: string): Range[] {
  return accept
    .split(",")
    .map(parseRange)
    .filter(({ quality }) => quality > 0)
    .sort((a, b) => b.quality - a.quality || b.precision - a.precision);
}

function parseRange(range: string): Range {
  const [type = "", ...parameters] = range.split(";").map((part) => part.trim());
  const parameterOf = (name: string) => {
    const parameter = parameters.find((part) => part.toLowerCase().startsWith(`${name}=`));
    return parameter?.slice(name.length + 1).replace(/^"(.*)"$/, "$1") ?? null;
  };
  const quality = Number(parameterOf("q") ?? 1);
  const own = parameters.filter((part) => !/^q=/i.test(part));
  return {
    text: [type, ...own].join(";"),
    type: type.toLowerCase(),
    version: parameterOf("version"),
    quality: Number.isNaN(quality) ? 1 : quality,
    precision: own.length - (type.split("*").length - 1),
  };
}
