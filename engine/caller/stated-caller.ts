import type { Caller } from "./caller.ts";
import { parseClaims } from "./claims.ts";

type Stated = Pick<Caller, "kind" | "claimsText" | "expiresAt">;

/** The caller of whom the database states the claims, the role among them. */
export function statedCaller({ kind, claimsText, expiresAt }: Stated): Caller {
  const claims = parseClaims(claimsText);
  if (typeof claims?.role !== "string") throw new Error("The database states claims without a role");
  return Object.freeze<Caller>({ kind, role: claims.role, claims, claimsText, expiresAt });
}
