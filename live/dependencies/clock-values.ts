import { isJsonObject, parseJsonExactly } from "#runtime/json";

/** The words that Postgres reads as the time of the statement, where it reads a text as a date or time. */
const CLOCK_WORDS = "now|today|tomorrow|yesterday";
const CLOCK_WORD = new RegExp(`(?<![a-z])(?:${CLOCK_WORDS})(?![a-z])`, "i");
/** A text that can be a date or time of such words: nothing else in it is a word, except the name of a time zone. */
const CLOCK_TEXT = `[^'a-z]*(?:${CLOCK_WORDS})(?:[^'a-z]|${CLOCK_WORDS}|allballs|utc|gmt|[a-z]+/[a-z_]+)*`;
const ONLY_CLOCK_TEXT = new RegExp(`^${CLOCK_TEXT}$`, "i");
/** Such a text in the body of a function, which may be read as a time anywhere. */
const CLOCK_LITERAL = new RegExp(`'${CLOCK_TEXT}'`, "i");
/** `('now'::text)::timestamp with time zone`: Postgres has not read it as a time when it parsed the expression. */
const CLOCK_CAST = new RegExp(`'${CLOCK_TEXT}'::[\\w ()\\[\\]"]+?\\)+::(?:date|time)`, "i");

/** A parameter of a statement whose value may be read as a date or time. */
export type TimeParameter = {
  readonly index: number;
  /** True if the value is JSON, of which any text may be. */
  readonly isDocument: boolean;
};

/** True if a value is read as another time in each run. */
export function namesClock(value: string): boolean {
  return CLOCK_WORD.test(value);
}

export function hasClockLiteral(source: string): boolean {
  return CLOCK_LITERAL.test(source);
}

export function hasClockCast(printed: string): boolean {
  return CLOCK_CAST.test(printed);
}

/** True if a parameter is read as another time in each run. */
export function readsClock(parameters: readonly TimeParameter[], values: readonly unknown[]): boolean {
  return parameters.some(({ index, isDocument }) => {
    const value = values[index];
    if (value === null || value === undefined || !namesClock(String(value))) return false;
    return !isDocument || hasClockText(parseJsonExactly(String(value)));
  });
}

function hasClockText(value: unknown): boolean {
  if (typeof value === "string") return ONLY_CLOCK_TEXT.test(value);
  if (Array.isArray(value)) return value.some(hasClockText);
  return isJsonObject(value) && Object.values(value).some(hasClockText);
}
