import { createHash } from "node:crypto";
import type { Caller } from "#accounts/identity";
import type { Config } from "#config";
import { formatLsn, parseLsn, type ReadYourWrites } from "#postgres/database";
import type { StatementContext } from "#postgres/statement";
import type { RequestHeaders } from "./request-info.ts";

/** The response to a write returns this header. A read that sends it back sees that write, whichever process and replica serve it. */
const CONSISTENCY_HEADER = "X-Consistency";

type ConsistencyRequest = {
  readonly headers: RequestHeaders;
  /** Absent if the response has no headers. */
  readonly addResponseHeaders?: (headers: Readonly<Record<string, string>>) => void;
};

type ReadingCaller = Pick<Caller, "role" | "claims">;
type ReadPosition = Pick<StatementContext, "readYourWrites">;

/** Adds the read-your-writes position to the statement context, which allows replicas to serve the reads of the request. */
export function makeReadYourWrites({ readDatabaseUrls }: Pick<Config, "readDatabaseUrls">) {
  const none: ReadPosition = {};
  return (caller: ReadingCaller, request: ConsistencyRequest): ReadPosition =>
    readDatabaseUrls === null ? none : { readYourWrites: positionOf(caller, request) };
}

function positionOf(
  { role, claims: { sub } }: ReadingCaller,
  { headers, addResponseHeaders }: ConsistencyRequest,
): ReadYourWrites {
  const hasSubject = typeof sub === "string" || typeof sub === "number";
  const subject = hasSubject ? `user ${sub}` : `role ${role}`;
  const header = headers[CONSISTENCY_HEADER.toLowerCase()];
  return {
    subject,
    replicaSeed: hasSubject ? hashSubject(subject) : Math.floor(Math.random() * 2 ** 32),
    minLsn: header === undefined ? 0n : parseLsn(String(header)),
    onWrite: (place) => addResponseHeaders?.({ [CONSISTENCY_HEADER]: formatLsn(place) }),
  };
}

function hashSubject(subject: string): number {
  return createHash("sha256").update(subject).digest().readUInt32BE();
}
