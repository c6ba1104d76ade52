import { DatabaseError } from "pg";

/** SQLSTATE lock_not_available. */
export function isLockTimeout(error: unknown): error is DatabaseError {
  return error instanceof DatabaseError && error.code === "55P03";
}
