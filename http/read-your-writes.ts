import { createHash } from "node:crypto";
import type { Config } from "../engine/config/config.ts";
import { formatLsn, parseLsn } from "../engine/database/lsn.ts";
import type { ReadYourWrites } from "../engine/database/read-your-writes.ts";
import type { StatementContext } from "../engine/database/statement.ts";
import type { Caller } from "../engine/identity/caller.ts";
import type { RequestHeaders } from "./request-info.ts";

/** Told with the answer to a write; a client that shows it with a read gets one that has seen that write, from any process. */
const CONSISTENCY_HEADER = "X-Consistency";

type ConsistencyRequest = {
  readonly headers: RequestHeaders;
  /** Of the answer; absent where it has none. */
  readonly addResponseHeaders?: (headers: Readonly<Record<string, string>>) => void;
};

type ReadingCaller = Pick<Caller, "role" | "claims">;
type WithFooting = Pick<StatementContext, "footing">;

/** What a request's context has more where there are replicas: with a footing its reads may be answered by one of them. */
export function makeReadYourWrites({ readDatabaseUrls }: Pick<Config, "readDatabaseUrls">) {
  const none: WithFooting = {};
  return (caller: ReadingCaller, request: ConsistencyRequest): WithFooting =>
    readDatabaseUrls === null ? none : { footing: footingOf(caller, request) };
}

function footingOf(
  { role, claims: { sub } }: ReadingCaller,
  { headers, addResponseHeaders: tell }: ConsistencyRequest,
): ReadYourWrites {
  const hasSubject = typeof sub === "string" || typeof sub === "number";
  const subject = hasSubject ? `user ${sub}` : `role ${role}`;
  const header = headers[CONSISTENCY_HEADER.toLowerCase()];
  return {
    subject,
    seat: hasSubject ? hashSubject(subject) : Math.floor(Math.random() * 2 ** 32),
    after: header === undefined ? 0n : parseLsn(String(header)),
    wrote: (place) => tell?.({ [CONSISTENCY_HEADER]: formatLsn(place) }),
  };
}

function hashSubject(subject: string): number {
  return createHash("sha256").update(subject).digest().readUInt32BE();
}
