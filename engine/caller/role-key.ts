import type { TokenKeys } from "./keys.ts";
import { signToken } from "./tokens.ts";

/** The key of a role in this deployment. Without a time of issue it is always the same text, so it can be told again at any time. */
export function roleKey(role: string, keys: TokenKeys, { jwtIssuer }: { readonly jwtIssuer: string }): string {
  return signToken({ iss: jwtIssuer, role }, keys, { timestamp: false });
}
