import { texts } from "../../texts.ts";
import type { EditedTable } from "./edited-table.ts";
import { constraintOfError, type RowError } from "./field-errors.ts";
import type { ValueProblem } from "./value-kind.ts";

/** A problem of a value, or of a record of an import. */
export type InputProblem = ValueProblem | { readonly problem: "required" | "noObject" | "tooManyCells" | "structure" };

/** Returns the message for users. */
export function problemText(problem: InputProblem): string {
  switch (problem.problem) {
    case "range":
      return texts.editing.outOfRange(problem.least, problem.greatest);
    case "decimals":
      return texts.editing.tooManyDecimals(problem.limit);
    case "length":
      return texts.editing.tooLong(problem.limit);
    default:
      return texts.editing.problems[problem.problem];
  }
}

/** Returns the message with its details and the definition of the constraint. */
export function errorText(table: EditedTable, error: RowError): string {
  const details = error.details?.startsWith("Failing row") ? null : error.details;
  return [error.message, details, constraintOfError(table, error)].filter(Boolean).join(" · ");
}
