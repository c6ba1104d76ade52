import { isAdministrator } from "../../engine/caller/administrator.ts";
import type { Caller } from "../../engine/caller/caller.ts";

/**
 * The owner of a task: the user, with any credential. Callers without a user id, such as anonymous ones, share one owner
 * per role; the task's unguessable id protects it from the others.
 */
export function taskOwner({ role, claims: { sub } }: Caller): string {
  return typeof sub === "string" && sub !== "" ? `user ${sub}` : `role ${role}`;
}

/** The owner whose tasks the caller may see; null (all) for an administrator. */
export function visibleTaskOwner(caller: Caller): string | null {
  return isAdministrator(caller) ? null : taskOwner(caller);
}
