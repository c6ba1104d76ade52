import type { DataType } from "../../engine/catalog/types.ts";
import type { Condition } from "./filter.ts";
import { type Compare, numberOrder } from "./number-order.ts";
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
  const questions = questionsOf(condition, isKnownHere(condition, type) && !canonical.includes(null));
  const compare = condition.operator in ORDERS || !isPlain(type) ? numberOrder(type) : null;
  const isTrue = truthOf(condition, { canonical, questions, compare });
  const wanted = condition.negated === (condition.operator === "neq" || condition.operator === "isdistinct");
  return {
    column,
    type,
    questions,
    passes: (cell, answers) => cell !== undefined && isTrue(cell, answers) === wanted,
  };
}

/** Whether what Postgres says of values of the type is said here as well, and sooner. */
export function isKnownHere({ operator }: Condition, type: DataType): boolean {
  switch (operator) {
    case "is":
      return true;
    case "eq":
    case "neq":
    case "in":
    case "isdistinct":
      return isPlain(type) || numberOrder(type) !== null;
    default:
      return operator in ORDERS && numberOrder(type) !== null;
  }
}

function questionsOf({ column, operator, values }: Condition, isKnown: boolean): readonly Question[] {
  if (isKnown || operator === "is") return [];
  const asked = operator === "neq" || operator === "in" || operator === "isdistinct" ? "eq" : operator;
  return values.map((value) => ({ column, operator: asked, value }));
}

/** Which orders of the cell and the value they let pass. */
const ORDERS: Readonly<Record<string, (order: number) => boolean>> = {
  lt: (order) => order < 0,
  lte: (order) => order <= 0,
  gt: (order) => order > 0,
  gte: (order) => order >= 0,
};
const isEqual = (order: number) => order === 0;

type Known = {
  readonly canonical: readonly (string | null)[];
  readonly questions: readonly Question[];
  readonly compare: Compare | null;
};

/** Whether the condition without its negation holds: `neq` is told as `eq` here, and `isdistinct` as its opposite. */
function truthOf({ operator, values }: Condition, { canonical, questions, compare }: Known) {
  const plain = new Set(canonical);
  const passes = ORDERS[operator] ?? isEqual;
  const isKnown = (cell: string): boolean =>
    compare ? canonical.some((value) => passes(compare(cell, value!))) : plain.has(cell);
  const isAnyOf = (cell: string, answers: Answers): Truth =>
    questions.length === 0 ? isKnown(cell) : questions.some((question) => answers(question) === true);
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
