import { isAdministrator } from "../../engine/caller/administrator.ts";
import type { Caller } from "../../engine/caller/caller.ts";

/**
 * Whose a task is: the user's, by whatever they sign in. Those who are nobody in particular, such as visitors, share a
 * name; among them the id of the task, which cannot be guessed, is the key to it.
 */
export function taskOwner({ role, claims: { sub } }: Caller): string {
  return typeof sub === "string" && sub !== "" ? `user ${sub}` : `role ${role}`;
}

/** Whose tasks the caller is told of. Null is everybody's: an administrator passes every check of ownership. */
export function ownerSought(caller: Caller): string | null {
  return isAdministrator(caller) ? null : taskOwner(caller);
}
