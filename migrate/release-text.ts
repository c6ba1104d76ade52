import { API_FUNCTIONS, moveApiNames } from "#postgres/client";

/** A function that a grant or a comment names without its arguments. */
const FUNCTION_ALONE = /\bfunction (api|content_service)\.(\w+)(?= (?:to|from|is)\b)/g;
/** The signatures, by name, of functions that both schemas have: those of `content_service`. */
const OTHER_ARGUMENTS: Readonly<Record<string, string>> = { read_task: "read_task(uuid, text)" };

/**
 * The text of a release's migration for a database whose schema `api` is the project's: the migration uses `content_service` instead.
 */
export function placeReleaseText(text: string): string {
  const moved = moveApiNames(text.replace(FUNCTION_ALONE, nameWithArguments));
  if (!/^create schema api;$/m.test(moved)) return moved;
  return moved
    .replace(/^create schema content_service;\n/m, "")
    .replace(/^create schema api;$/m, "create schema content_service;")
    .replace(/^comment on schema api is .*\n/m, "")
    .replace(/\bon schema api\b/g, "on schema content_service");
}

function nameWithArguments(text: string, schema: string, name: string): string {
  const ofApi = API_FUNCTIONS.find((signature) => signature.startsWith(`${name}(`));
  const signature = schema === "api" ? ofApi : OTHER_ARGUMENTS[name];
  return signature === undefined ? text : `function ${schema}.${signature}`;
}
