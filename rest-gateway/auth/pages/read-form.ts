import { ApiError } from "../../../engine/errors.ts";
import type { GatewayRequest } from "../../http.ts";
import { SIGN_IN_BODY } from "../body-limit.ts";

const TYPE = "application/x-www-form-urlencoded";

/** Reads a submitted form. */
export async function readForm(request: GatewayRequest): Promise<URLSearchParams> {
  const [type = ""] = (request.headers["content-type"] ?? "").split(";");
  if (type.trim().toLowerCase() !== TYPE) {
    throw new ApiError(415, "UNSUPPORTED_MEDIA_TYPE", "This page accepts only its form.", {
      headers: { Accept: TYPE },
    });
  }
  return new URLSearchParams((await request.readBody(SIGN_IN_BODY)).toString("utf8"));
}

/** Refuses empty fields and NUL characters, which Postgres cannot store. */
export function requireFields<Name extends string>(
  values: URLSearchParams,
  names: readonly Name[],
): Readonly<Record<Name, string>> {
  const fields = names.map((name) => [name, values.get(name) ?? ""] as const);
  const missing = fields.filter(([, value]) => value === "" || value.includes("\0"));
  if (missing.length === 0) return Object.fromEntries(fields) as Record<Name, string>;
  throw new ApiError(400, "MISSING_FIELD", "Fill in all fields.", {
    details: missing.map(([field]) => ({ field, message: "Fill this in." })),
  });
}
