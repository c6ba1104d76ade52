import { ApiError } from "#runtime";

/** The query cannot be kept up to date. */
export function notLive(obstacles: readonly string[]): ApiError {
  const [first] = obstacles;
  return new ApiError("invalid", "NOT_LIVE", `This query cannot be live: ${first}.`, {
    details: obstacles.length > 1 ? obstacles.join("; ") : null,
    hint: "Read it again when you need to, or change what the message names.",
  });
}

export function tooManyQueries(max: number, whose: "a caller" | "the service"): ApiError {
  const message =
    whose === "a caller"
      ? `A caller can have ${max} live queries open.`
      : "The service has too many live queries open.";
  return new ApiError("rateLimited", "RATE_LIMITED", message, { hint: "Close others first.", retryAfterSeconds: 5 });
}

export function resultTooLarge(bytes: number): ApiError {
  return new ApiError("invalid", "NOT_LIVE", `This query cannot be live: its result is larger than ${bytes} bytes.`, {
    hint: "Select fewer columns or rows, for example with limit.",
  });
}

export function tooSlow(milliseconds: number): ApiError {
  return new ApiError("invalid", "NOT_LIVE", `This query cannot be live: it takes longer than ${milliseconds} ms.`, {
    hint: "It would run again after each change. Add an index, or select fewer rows.",
  });
}
