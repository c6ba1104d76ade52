import type { Caller } from "./caller.ts";

const ADMIN = "admin";

/** The role that passes every check of ownership; what else it may do is said in SQL. */
export function isAdministrator({ role }: Pick<Caller, "role">): boolean {
  return role === ADMIN;
}
