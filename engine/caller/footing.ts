import { createHash } from "node:crypto";
import { formatLsn, parseLsn } from "../changes/lsn.ts";
import type { Config } from "../config/config.ts";
import type { Footing } from "../database/replicas/footing.ts";
import type { Context } from "../database/statement.ts";
import type { Caller } from "./caller.ts";
import type { RequestHeaders } from "./occasion.ts";

/** Told with the answer to a write; a client that shows it with a read gets one that has seen that write, from any process. */
const CONSISTENCY_HEADER = "X-Consistency";

type Shown = {
  readonly headers: RequestHeaders;
  /** Of the answer; absent where it has none. */
  readonly tell?: (headers: Readonly<Record<string, string>>) => void;
};

type Asking = Pick<Caller, "role" | "claims">;
type WithFooting = Pick<Context, "footing">;

/** What a request's context has more where there are replicas: with a footing its reads may be answered by one of them. */
export function makeFootings({ readDatabaseUrls }: Pick<Config, "readDatabaseUrls">) {
  const none: WithFooting = {};
  return (caller: Asking, shown: Shown): WithFooting =>
    readDatabaseUrls === null ? none : { footing: footingOf(caller, shown) };
}

function footingOf({ role, claims: { sub } }: Asking, { headers, tell }: Shown): Footing {
  const isSomebody = typeof sub === "string" || typeof sub === "number";
  const subject = isSomebody ? `user ${sub}` : `role ${role}`;
  const shown = headers[CONSISTENCY_HEADER.toLowerCase()];
  return {
    subject,
    seat: isSomebody ? seatOf(subject) : Math.floor(Math.random() * 2 ** 32),
    after: shown === undefined ? 0n : parseLsn(String(shown)),
    wrote: (place) => tell?.({ [CONSISTENCY_HEADER]: formatLsn(place) }),
  };
}

function seatOf(subject: string): number {
  return createHash("sha256").update(subject).digest().readUInt32BE();
}
