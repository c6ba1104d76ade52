export const BRANCH_MARK = "A branch of the database ";

/** The comment of the database of a branch; others are never dropped. */
export function branchMarkOf(database: string): string {
  return `${BRANCH_MARK}${database}.`;
}
