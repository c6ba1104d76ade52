import { type Claims, parseClaims } from "../engine/caller/claims.ts";
import { UsageError } from "./command.ts";

/** `--claims` as JSON, `--sub` for the one that is asked for most. */
export function readClaims({ claims, sub }: Readonly<Record<string, unknown>>): Claims {
  const own = sub === undefined ? {} : { sub };
  if (claims === undefined) return own;
  const parsed = parseClaims(String(claims));
  if (parsed) return { ...parsed, ...own };
  throw new UsageError(`--claims takes a JSON object, such as '{"sub": "7"}'.`);
}
