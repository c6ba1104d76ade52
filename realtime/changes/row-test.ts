import type { DataType } from "../../engine/catalog/types.ts";
import type { Condition } from "./filter.ts";
import type { Question } from "./question.ts";

/** A value of the row as Postgres writes it. Undefined: it is not in the log. */
export type Cell = string | null | undefined;
/** What Postgres said; null: unknown, as a comparison with null is. */
export type Truth = boolean | null;
export type Answers = (question: Question) => Truth;

/** A condition of a filter, made ready to be held against rows. */
export type RowTest = {
  readonly column: string;
  /** The column's, when the condition was read. */
  readonly type: DataType;
  /** What Postgres has to be asked about each row; the rest is known by looking at it. */
  readonly questions: readonly Question[];
  passes(cell: Cell, answers: Answers): boolean;
};

/** Of these types equal values are written equally, so that they can be compared without asking. */
const PLAIN = new Set(["bool", "date", "int2", "int4", "int8", "text", "uuid", "varchar"]);

/**
 * `canonical` are the condition's values as Postgres writes them in the column's type; null where an equal one may be
 * written otherwise.
 */
export function makeRowTest(condition: Condition, canonical: readonly (string | null)[], type: DataType): RowTest {
  const { column } = condition;
  const questions = questionsOf(condition, isPlain(type) && !canonical.includes(null));
  const isTrue = truthOf(condition, canonical, questions);
  const wanted = condition.negated === (condition.operator === "neq" || condition.operator === "isdistinct");
  return {
    column,
    type,
    questions,
    passes: (cell, answers) => cell !== undefined && isTrue(cell, answers) === wanted,
  };
}

function questionsOf({ column, operator, values }: Condition, isPlain: boolean): readonly Question[] {
  switch (operator) {
    case "is":
      return [];
    case "eq":
    case "neq":
    case "in":
    case "isdistinct":
      return isPlain ? [] : values.map((value) => ({ column, operator: "eq", value }));
    default:
      return values.map((value) => ({ column, operator, value }));
  }
}

/** Whether the condition without its negation holds: `neq` is told as `eq` here, and `isdistinct` as its opposite. */
function truthOf(
  { operator, values }: Condition,
  canonical: readonly (string | null)[],
  questions: readonly Question[],
) {
  const plain = new Set(canonical);
  const isAnyOf = (cell: string, answers: Answers): Truth =>
    questions.length === 0 ? plain.has(cell) : questions.some((question) => answers(question) === true);
  switch (operator) {
    case "is":
      return (cell: string | null): Truth => cell === IS[values[0]!];
    case "isdistinct":
      return (cell: string | null, answers: Answers): Truth => cell !== null && isAnyOf(cell, answers);
    default:
      return (cell: string | null, answers: Answers): Truth => (cell === null ? null : isAnyOf(cell, answers));
  }
}

/** What `is` means, as Postgres writes a boolean. */
const IS: Readonly<Record<string, string | null>> = { null: null, unknown: null, true: "t", false: "f" };

function isPlain(type: DataType): boolean {
  return type.kind === "enum" || (type.schema === "pg_catalog" && PLAIN.has(type.name));
}
