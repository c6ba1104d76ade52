import { createHash } from "node:crypto";
import type { Caller } from "#accounts/identity";
import type { Config } from "#config";
import { formatLsn, type Lsn, parseLsn, type ReadYourWrites, type StatementContext } from "#postgres/database";
import type { RequestHeaders } from "./request-info.ts";

/** Returned with the response to a write. A read that sends it back sees that write, whichever process and replica serve it. */
const CONSISTENCY_HEADER = "X-Consistency";

type ConsistencyRequest = {
  readonly headers: RequestHeaders;
  /** Absent if the response has no headers. */
  readonly addResponseHeaders?: (headers: Readonly<Record<string, string>>) => void;
};

type ReadingCaller = Pick<Caller, "role" | "claims">;
type ReadPosition = Pick<StatementContext, "readYourWrites">;

/** Adds the read-your-writes position to the statement context, which allows replicas and the cache to serve the reads of the request. */
export function makeReadYourWrites({ readDatabaseUrls, cache }: Pick<Config, "cache" | "readDatabaseUrls">) {
  const none: ReadPosition = {};
  return (caller: ReadingCaller, request: ConsistencyRequest): ReadPosition =>
    readDatabaseUrls === null && !cache ? none : { readYourWrites: positionOf(caller, request) };
}

/** The position that a read must have; null: it cannot be read. */
export function readConsistencyHeader(headers: RequestHeaders): Lsn | null {
  const header = headers[CONSISTENCY_HEADER.toLowerCase()];
  return header === undefined ? 0n : parseLsn(String(header));
}

function positionOf(
  { role, claims: { sub } }: ReadingCaller,
  { headers, addResponseHeaders }: ConsistencyRequest,
): ReadYourWrites {
  const hasSubject = typeof sub === "string" || typeof sub === "number";
  const subject = hasSubject ? `user ${sub}` : `role ${role}`;
  return {
    subject,
    replicaSeed: hasSubject ? hashSubject(subject) : Math.floor(Math.random() * 2 ** 32),
    minLsn: readConsistencyHeader(headers),
    onWrite: (place) => addResponseHeaders?.({ [CONSISTENCY_HEADER]: formatLsn(place) }),
  };
}

function hashSubject(subject: string): number {
  return createHash("sha256").update(subject).digest().readUInt32BE();
}
