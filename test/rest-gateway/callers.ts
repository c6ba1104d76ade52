import type { Claims } from "./table/client.ts";

export const [ANN, BOB] = ["41", "42"] as const;
/** Callers of each role, with and without an account. */
export const CALLERS: readonly Claims[] = [
  { role: "anon" },
  { role: "authenticated", sub: ANN },
  { role: "authenticated", sub: BOB },
  { role: "admin", sub: BOB },
  { role: "service_role" },
];
