import { hash } from "node:crypto";
import { type Ask, askSeldom } from "../ask-seldom.ts";
import type { AsOwner } from "../database/as-owner.ts";
import type { Logger } from "../log.ts";
import { ownerQuestion } from "../owner-question.ts";
import type { Caller } from "./caller.ts";
import { statedCaller } from "./stated-caller.ts";

/** The caller that a key of `auth.api_keys` stands for; null when there is none, or it has ended. */
export type FindKey = (key: string) => Caller | null | Promise<Caller | null>;

type Options = {
  readonly asOwner: AsOwner;
  readonly log: Pick<Logger, "warn">;
};
type KeyRow = { digest: string; claims: string; expires: number | null };

/** So long may a key be used after it was revoked, and not work after it was made. */
const REMEMBERED_MS = 4_000;
const MOST_REMEMBERED = 10_000;
/** What is no key at first sight is nothing to ask about. */
const PLAUSIBLE = /^[!-~]{32,256}$/;

const USE_KEYS = `
  select encode(key_hash, 'hex') as digest, claims::text, extract(epoch from expires_at)::float8 as expires
  from auth.use_api_keys($1)`;

/** Asks Postgres about keys that it has not asked about of late, one question at a time however many keys there are. */
export function makeKeyFinder({ asOwner, log }: Options): FindKey {
  const askOwner = ownerQuestion<KeyRow>({
    asOwner,
    text: USE_KEYS,
    log,
    warning: "keys of auth.api_keys are refused: only the owner (OWNER_DATABASE_URL) can look them up",
  });
  const ask: Ask<Caller> = async (digests) => {
    const rows = await askOwner([digests.map(toBytes)]);
    return new Map(rows.map((row) => [row.digest, toCaller(row)]));
  };
  const callerOf = askSeldom(ask, { rememberedMs: REMEMBERED_MS, most: MOST_REMEMBERED });

  return (key) => {
    if (!PLAUSIBLE.test(key)) return null;
    const caller = callerOf(hash("sha256", key, "hex"));
    return caller instanceof Promise ? caller : caller && stillValid(caller);
  };
}

function toCaller({ claims, expires }: KeyRow): Caller {
  return statedCaller({ kind: "key", claimsText: claims, expiresAt: expires });
}

function toBytes(digest: string): Buffer {
  return Buffer.from(digest, "hex");
}

function stillValid(caller: Caller): Caller | null {
  return caller.expiresAt === null || Date.now() < caller.expiresAt * 1000 ? caller : null;
}
