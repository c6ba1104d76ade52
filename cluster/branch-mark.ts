import { isJsonObject } from "#runtime/json";
import { BRANCH_MARK } from "./archive/schema/privileges.ts";

/** The first line of the comment of the database of a branch; others are never dropped. */
export function branchMarkOf(database: string): string {
  return `${BRANCH_MARK}${database}.`;
}

/**
 * A new database is not yet readable as a branch by its comment, which needs a statement of its own: until it has one, its name says what
 * it is. At most 53 bytes, with the number of the database that it is a copy of.
 */
export function unmarkedBranchOf(databaseOid: number, branch: string): string {
  return `${branch} (branch of ${databaseOid})`;
}

/** What is known of a branch besides its database: the second line of its comment, where there is one. */
export type BranchNote = {
  readonly isIncomplete?: boolean;
  /** Why it is incomplete. */
  readonly error?: string;
  /** What the owner was not permitted to create. */
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
