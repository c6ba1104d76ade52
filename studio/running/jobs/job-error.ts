import { isJsonObject } from "../../stored-json.ts";

/** Returns the message in the error of a task or a run; empty if it has none. */
export function jobErrorMessage(error: unknown): string {
  return isJsonObject(error) && typeof error.message === "string" ? error.message : "";
}
