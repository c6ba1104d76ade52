import { type HttpError, toHttpError } from "../../../../http/http-error.ts";
import { ApiError } from "../../../../runtime/errors.ts";

export type Refusal = Pick<HttpError, "status" | "code" | "message" | "details" | "hint">;

/** The error that a parser throws, as the client gets it; anything else fails the test. */
export function parseErrorOf(parse: () => unknown): Refusal {
  let result: unknown;
  try {
    result = parse();
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const { status, code, message, details, hint } = toHttpError(error);
    return { status, code, message, details, hint };
  }
  throw new Error(`Not refused: ${JSON.stringify(result)}`);
}

/** `column 4: unexpected "x" expecting …` of a text that cannot be parsed. */
export function complaintOf(parse: () => unknown): string {
  const { message, details } = parseErrorOf(parse);
  return `${/column \d+/.exec(message)?.[0]}: ${details}`;
}
