import { hash } from "node:crypto";
import type { AsOwner } from "../database/as-owner.ts";
import type { Logger } from "../log.ts";
import { oneAtATime } from "../one-at-a-time.ts";
import { ownerQuestion } from "../owner-question.ts";
import type { Caller } from "./caller.ts";
import type { Claims } from "./claims.ts";

/** The caller that a key of `auth.api_keys` stands for; null when there is none, or it has ended. */
export type FindKey = (key: string) => Caller | null | Promise<Caller | null>;

type Options = {
  readonly asOwner: AsOwner;
  readonly log: Pick<Logger, "warn">;
};
type KeyRow = { digest: string; claims: Claims & { role: string }; expires: number | null };
type Found = ReadonlyMap<string, Caller>;

/** So long may a key be used after it was revoked, and not work after it was made. */
const REMEMBERED_MS = 4_000;
/** Of good keys, and as many of others: who tries many cannot push out those that work. */
const MOST_REMEMBERED = 10_000;
/** What is no key at first sight is nothing to ask about. */
const PLAUSIBLE = /^[!-~]{32,256}$/;

const USE_KEYS = `
  select encode(key_hash, 'hex') as digest, claims, extract(epoch from expires_at)::float8 as expires
  from auth.use_api_keys($1)`;

/** Asks Postgres about keys that it has not asked about of late, one question at a time however many keys there are. */
export function makeKeyFinder({ asOwner, log }: Options): FindKey {
  const known = new Recent<Caller>();
  const unknown = new Recent<null>();
  const askOwner = ownerQuestion<KeyRow>({
    asOwner,
    text: USE_KEYS,
    log,
    warning: "keys of auth.api_keys are refused: only the owner (OWNER_DATABASE_URL) can look them up",
  });
  const askTogether = oneAtATime(async (digests): Promise<Found> => {
    const rows = await askOwner([digests.map(toBytes)]);
    return new Map(rows.map((row) => [row.digest, toCaller(row)]));
  });

  const find = async (digest: string): Promise<Caller | null> => {
    const caller = (await askTogether(digest)).get(digest) ?? null;
    if (caller) known.add(digest, caller);
    else unknown.add(digest, null);
    return caller;
  };

  return (key) => {
    if (!PLAUSIBLE.test(key)) return null;
    const digest = hash("sha256", key, "hex");
    const caller = known.get(digest) ?? unknown.get(digest);
    return caller === undefined ? find(digest) : caller && stillValid(caller);
  };
}

function toCaller({ claims, expires }: KeyRow): Caller {
  return Object.freeze<Caller>({
    kind: "key",
    role: claims.role,
    claims,
    claimsText: JSON.stringify(claims),
    expiresAt: expires,
  });
}

function toBytes(digest: string): Buffer {
  return Buffer.from(digest, "hex");
}

function stillValid(caller: Caller): Caller | null {
  return caller.expiresAt === null || Date.now() < caller.expiresAt * 1000 ? caller : null;
}

class Recent<Value> {
  readonly #entries = new Map<string, { readonly value: Value; readonly until: number }>();

  get(name: string): Value | undefined {
    const entry = this.#entries.get(name);
    return entry && performance.now() < entry.until ? entry.value : undefined;
  }

  add(name: string, value: Value): void {
    this.#entries.delete(name);
    this.#entries.set(name, { value, until: performance.now() + REMEMBERED_MS });
    if (this.#entries.size > MOST_REMEMBERED) this.#entries.delete(this.#entries.keys().next().value!);
  }
}
