import { ApiError } from "../engine/errors.ts";

export function notFound(): ApiError {
  return new ApiError(404, "RESOURCE_NOT_FOUND", "There is nothing at this address.", {
    hint: "Addresses are lower case and have no slash at the end.",
  });
}

/** `allow` as the header says it: `GET, HEAD, OPTIONS`. */
export function methodNotAllowed(method: string, allow: string): ApiError {
  return new ApiError(405, "METHOD_NOT_ALLOWED", `This address does not take ${method}.`, {
    hint: `It takes ${allow}.`,
    headers: { Allow: allow },
  });
}
