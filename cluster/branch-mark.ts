import { isJsonObject } from "#runtime/json";
import { BRANCH_MARK } from "./archive/schema/privileges.ts";

/** Returns the first line of the comment that marks the database of a branch; other databases are never dropped. */
export function branchMarkOf(database: string): string {
  return `${BRANCH_MARK}${database}.`;
}

/**
 * A comment marks a branch, but needs a statement after the creation of the database: until then, the name marks it. The
 * name has at most 53 bytes, with the number of the original database.
 */
export function unmarkedBranchOf(databaseOid: number, branch: string): string {
  return `${branch} (branch of ${databaseOid})`;
}

/** The data of a branch besides its database: the optional second line of its comment. */
export type BranchNote = {
  readonly isIncomplete?: boolean;
  /** The reason why it is incomplete. */
  readonly error?: string;
  /** The objects that the owner was not permitted to create. */
  readonly warnings?: readonly string[];
};

export function branchComment(database: string, note: BranchNote): string {
  const isPlain = !note.isIncomplete && (note.warnings ?? []).length === 0;
  return isPlain ? branchMarkOf(database) : `${branchMarkOf(database)}\n${JSON.stringify(note)}`;
}

export function readBranchNote(comment: string): BranchNote {
  try {
    const note: unknown = JSON.parse(comment.slice(comment.indexOf("\n") + 1));
    return isJsonObject(note) ? (note as BranchNote) : {};
  } catch {
    return {};
  }
}
