import type { Condition } from "./filter.ts";
import { isPattern } from "./question.ts";

const LONGEST_PATTERN = 100;
/** Back references, counted repetitions and groups with an option can take longer than any text is long. */
const COSTLY = /\\\d|\{|\(\?|^\*\*\*/;

/** Whether a condition is cheap to check, whatever it is checked against: a pattern is short, and simple. */
export function isFrugal({ operator, values }: Condition): boolean {
  if (!isPattern(operator)) return true;
  const isExpression = operator === "match" || operator === "imatch";
  return values.every((value) => value.length <= LONGEST_PATTERN && !(isExpression && COSTLY.test(value)));
}
