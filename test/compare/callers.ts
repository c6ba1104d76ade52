import jwt from "jsonwebtoken";
import { SECRET } from "../secret.ts";

export type CallerName = keyof typeof CLAIMS;

const CLAIMS = {
  anon: null,
  "user 1": { role: "authenticated", sub: "1" },
  "user 2": { role: "authenticated", sub: "2" },
  admin: { role: "admin", sub: "3" },
  service: { role: "service_role" },
};

export const CALLERS = Object.keys(CLAIMS) as CallerName[];

export function authorizationOf(caller: CallerName): Record<string, string> {
  const claims = CLAIMS[caller];
  return claims === null ? {} : { Authorization: `Bearer ${jwt.sign(claims, SECRET, { noTimestamp: true })}` };
}
