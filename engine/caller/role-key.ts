import { withClaimAt } from "../claim-path.ts";
import type { Config } from "../config/config.ts";
import type { TokenKeys } from "./keys.ts";
import { signToken } from "./tokens.ts";

type Deployment = Pick<Config, "jwtIssuer" | "jwtRoleClaim">;

/** The key of a role in this deployment. Without a time of issue it is always the same text, so it can be told again at any time. */
export function roleKey(role: string, keys: TokenKeys, { jwtIssuer, jwtRoleClaim }: Deployment): string {
  return signToken(withClaimAt({ iss: jwtIssuer, role }, jwtRoleClaim, role), keys, { timestamp: false });
}
