import { type Reference, referTo } from "./component-key.ts";

const ERRORS = {
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

export type ErrorStatus = Exclude<keyof typeof ERRORS, "default">;

export function* errorResponses(): Generator<[string, object]> {
  const content = { "application/json": { schema: referTo("schemas", "rest.error") } };
  for (const [status, description] of Object.entries(ERRORS)) yield [`error.${status}`, { description, content }];
}

/** Those that can occur, and whatever else may go wrong. */
export function refuses(...statuses: readonly ErrorStatus[]): Readonly<Record<string, Reference>> {
  return Object.fromEntries(
    [...statuses, "default"].map((status) => [status, referTo("responses", `error.${status}`)]),
  );
}
