import { ApiError } from "../../../engine/errors.ts";

/** PUT, with a payload that names another row than the URL. */
export function anotherKey(): ApiError {
  return new ApiError(400, "PGRST115", "Payload values do not match URL in primary key column(s)");
}

export function notSingular(rows: number): ApiError {
  return new ApiError(406, "PGRST116", "Cannot coerce the result to a single JSON object", {
    details: `The result contains ${rows} rows`,
  });
}

export function tooManyAffected(rows: number): ApiError {
  return new ApiError(400, "PGRST124", "Query result exceeds max-affected preference constraint", {
    details: `The query affects ${rows} rows`,
  });
}
