import { hash } from "node:crypto";
import pg from "pg";
import type { AsOwner } from "../database/as-owner.ts";
import type { Logger } from "../log.ts";
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

/** Postgres has no such function, or no such schema: a database without API keys. */
const WITHOUT_KEYS: readonly (string | undefined)[] = ["42883", "3F000"];
/** Whoever is asked as the owner is not the owner. */
const NOT_OWNER = "42501";

/** Asks Postgres about keys that it has not asked about of late, one question at a time however many keys there are. */
export function makeKeyFinder({ asOwner, log }: Options): FindKey {
  const known = new Recent<Caller>();
  const unknown = new Recent<null>();
  let hasWarned = false;

  const withoutKeys = (error: unknown): KeyRow[] => {
    const code = error instanceof pg.DatabaseError ? error.code : undefined;
    if (WITHOUT_KEYS.includes(code)) return [];
    if (code !== NOT_OWNER) throw error;
    if (!hasWarned) log.warn("keys of auth.api_keys are refused: only the owner (OWNER_DATABASE_URL) can look them up");
    hasWarned = true;
    return [];
  };

  const ask = async (digests: readonly string[]): Promise<Found> => {
    const question = asOwner((client) => client.query<KeyRow>(USE_KEYS, [digests.map(toBytes)]));
    const rows = await question.then((answer) => answer.rows, withoutKeys);
    return new Map(rows.map((row) => [row.digest, toCaller(row)]));
  };
  const askTogether = oneAtATime(ask);

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

/** What is asked while an answer is awaited is asked together afterwards: guesses by the thousand are a few questions. */
function oneAtATime(ask: (digests: readonly string[]) => Promise<Found>): (digest: string) => Promise<Found> {
  let last: Promise<unknown> = Promise.resolve();
  let next: { readonly digests: Set<string>; readonly answer: Promise<Found> } | null = null;

  const begin = () => {
    const digests = new Set<string>();
    const answer = last.then(() => {
      next = null;
      return ask([...digests]);
    });
    last = answer.catch(() => {});
    return { digests, answer };
  };

  return (digest) => {
    next ??= begin();
    next.digests.add(digest);
    return next.answer;
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
