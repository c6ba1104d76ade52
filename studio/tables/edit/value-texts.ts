import { texts } from "../../texts.ts";
import type { EditedTable } from "./edited-table.ts";
import { findViolated, type RowError } from "./field-errors.ts";
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

/** Returns what is wrong and what to do, followed by the message, its details and the definition of the constraint. */
export function errorText(table: EditedTable, error: RowError): string {
  // The message of Postgres says no more.
  if (error.code === "23502") return texts.editing.problems.required;
  const details = error.details?.startsWith("Failing row") ? null : error.details;
  const exact = [error.message, details, findViolated(table.constraints, error)?.definition]
    .filter(Boolean)
    .join(" · ");
  const cause = causeOf(table, error);
  return cause === null ? exact : `${cause} (${exact})`;
}

function causeOf(table: EditedTable, error: RowError): string | null {
  const { causes } = texts.editing;
  switch (error.code) {
    case "23505":
      return causes.duplicate;
    case "23503":
      return error.details?.includes("is still referenced")
        ? causes.referencedRow
        : causes.missingRow(/in table "(.*?)"/.exec(error.details ?? "")?.[1] ?? targetOf(table, error));
    case "23514":
      return findViolated(table.constraints, error)?.comment ?? causes.check;
    case "23P01":
      return causes.exclusion;
    case "22001":
      return causes.tooLong;
    case "22003":
      return causes.range;
    case "22P02":
    case "22007":
    case "22008":
      return causes.invalid;
    default:
      return null;
  }
}

/** Returns the table that the violated foreign key refers to. For tables with policies, Postgres does not name it. */
function targetOf({ foreign_keys: keys, name }: EditedTable, error: RowError): string {
  const violated = findViolated(keys, error);
  return violated?.target.name ?? name;
}
