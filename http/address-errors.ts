import { HttpError } from "./http-error.ts";

export function notFound(): HttpError {
  return new HttpError(404, "RESOURCE_NOT_FOUND", "Not found.", {
    hint: "Paths are lower case and have no trailing slash.",
  });
}

/** `allow` as the header says it: `GET, HEAD, OPTIONS`. */
export function methodNotAllowed(method: string, allow: string): HttpError {
  return new HttpError(405, "METHOD_NOT_ALLOWED", `The method ${method} is not allowed here.`, {
    hint: `Allowed methods: ${allow}.`,
    headers: { Allow: allow },
  });
}
