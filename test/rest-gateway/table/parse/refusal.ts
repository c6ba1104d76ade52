import { HttpError } from "../../../../http/http-error.ts";

export type Refusal = Pick<HttpError, "status" | "code" | "message" | "details" | "hint">;

/** The refusal that a parser throws; anything else that it does fails the test. */
export function refusalOf(parse: () => unknown): Refusal {
  let result: unknown;
  try {
    result = parse();
  } catch (error) {
    if (!(error instanceof HttpError)) throw error;
    const { status, code, message, details, hint } = error;
    return { status, code, message, details, hint };
  }
  throw new Error(`Not refused: ${JSON.stringify(result)}`);
}

/** `column 4: unexpected "x" expecting …` of a text that cannot be parsed. */
export function complaintOf(parse: () => unknown): string {
  const { message, details } = refusalOf(parse);
  return `${/column \d+/.exec(message)?.[0]}: ${details}`;
}
