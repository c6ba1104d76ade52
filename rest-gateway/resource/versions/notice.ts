import { ApiError } from "../../../engine/errors.ts";
import type { Version } from "./served.ts";

/** What is said of a version that goes away; null for one that stays. */
export type Notice = {
  /** The path is that which was asked for; the base stands before it for clients. */
  headers(path: string, base: string): Readonly<Record<string, string>>;
  readonly body: Deprecation;
};

export type Deprecation = {
  readonly deprecated: true;
  readonly message: string;
  readonly sunset: string | null;
  readonly migrationGuide: string | null;
};

export function noticeOf(version: Version): Notice | null {
  const { number, status, sunset, successor, migrationGuide } = version;
  if (status !== "deprecated" && status !== "retired") return null;
  const isOver = status === "retired";
  const end = sunset === null ? "" : ` ${isOver ? "since" : "and ends on"} ${sunset.toISOString().slice(0, 10)}`;
  const move = successor === null ? "" : ` Move to version ${successor}.`;
  const message = `Version ${number} is ${isOver ? "retired" : "deprecated"}${end}.${move}`;
  const headers = {
    "X-API-Warn": message,
    ...(sunset !== null && { "X-API-Sunset": sunset.toUTCString() }),
  };
  return {
    headers: (path, base) => ({
      ...headers,
      ...(successor !== null && { Link: `<${base}${inVersion(path, successor)}>; rel=successor-version` }),
    }),
    body: { deprecated: true, message, sunset: sunset?.toISOString() ?? null, migrationGuide },
  };
}

/** Whoever asks for what is no longer served is told where to go. */
export function retirement(version: Version, path: string, base: string): ApiError {
  const { headers, body } = noticeOf(version)!;
  const guide = version.migrationGuide === null ? "" : ` ${version.migrationGuide}`;
  return new ApiError(410, "VERSION_RETIRED", `${body.message}${guide}`, {
    headers: headers(path, base),
    beside: { deprecation: body },
  });
}

/** `/users` and `/api/v1/users` -> `/api/v2/users` */
function inVersion(path: string, version: number): string {
  return path.replace(/^(?:\/api(?:\/v\d+)?)?(?=\/|$)/i, `/api/v${version}`);
}
