import type { RecordedRequest } from "./exchange.ts";

type VersionDifference = {
  /** The major version since which Postgres answers as recorded. */
  readonly since: number;
  readonly reason: string;
  readonly concerns: (request: RecordedRequest) => boolean;
};

/** The recordings are of Postgres 18. */
const VERSION_DIFFERENCES: readonly VersionDifference[] = [
  {
    since: 18,
    reason: "execution plans have `Disabled`, and other costs",
    concerns: ({ headers }) => /vnd\.pgrst\.plan/.test(headers.Accept ?? ""),
  },
  {
    since: 16,
    reason: "integers may be written in hexadecimal, octal and binary",
    concerns: ({ path }) => /=eq\.0[box]\d/.test(path),
  },
  {
    since: 15,
    reason: "views may have the privileges of their callers",
    concerns: ({ path }) => path.endsWith("/invoker_view"),
  },
];

/** Whether the server's version is known to answer this request in another way. */
export function answersOtherwise(major: number, request: RecordedRequest): boolean {
  return VERSION_DIFFERENCES.some(({ since, concerns }) => major < since && concerns(request));
}

/** Before Postgres 18 stored generated columns are not published: the one of the recorded table is missing. */
export function messagesOf<Transcripts>(major: number, recorded: Transcripts): Transcripts {
  if (major >= 18) return recorded;
  const text = JSON.stringify(recorded);
  return JSON.parse(text.replaceAll(/,\{\\"name\\":\\"doubled\\",\\"type\\":\\"int4\\"\}|,\\"doubled\\":\d+/g, ""));
}
