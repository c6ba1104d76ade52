import { isJsonObject } from "../engine/json-object.ts";
import { UsageError } from "./command.ts";

/** `--claims` as JSON, `--sub` for the one that is asked for most. */
export function readClaims({ claims, sub }: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const own = sub === undefined ? {} : { sub };
  if (claims === undefined) return own;
  try {
    const parsed: unknown = JSON.parse(String(claims));
    if (isJsonObject(parsed)) return { ...parsed, ...own };
  } catch {
    // Said below, in words.
  }
  throw new UsageError(`--claims takes a JSON object, such as '{"sub": "7"}'.`);
}
