import { argon2, randomBytes, timingSafeEqual } from "node:crypto";
import { availableParallelism } from "node:os";
import { promisify } from "node:util";
import { compare as matchesBcrypt } from "@node-rs/bcrypt";
import { type LimitSignInWork, makeSignInLimiter, type SignInRequester } from "./sign-in-limiter.ts";

/** OWASP's second choice for argon2id: 19 MiB, 2 passes; about 25 ms. After a change, each hash is renewed at its next use. */
export const DEFAULT_PARAMETERS: HashParameters = { memory: 19_456, passes: 2, parallelism: 1 };
const SALT_BYTES = 16;
const TAG_BYTES = 32;
/** `$argon2id$v=19$m=19456,t=2,p=1$c2FsdA$dGFn` */
const PHC = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=(\d+)\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/;

/** The hash of an imported account: `$2a$10$…`. A greater cost would occupy a processor for seconds. */
const BCRYPT = /^\$2[aby]\$(?:0[4-9]|1[0-4])\$[./A-Za-z0-9]{53}$/;

const derive = promisify(argon2);

export type Passwords = {
  hash(password: string, requester?: SignInRequester): Promise<string>;
  /** Hashes with the salt of another hash; the results are equal if the passwords are. */
  hashLike(phc: string, password: string, requester?: SignInRequester): Promise<string>;
  /** Takes the same time if the hash is null (unknown user) or of another algorithm, and returns false then. */
  matches(phc: string | null, password: string, requester?: SignInRequester): Promise<boolean>;
  isOutdated(phc: string): boolean;
  /**
   * Makes a limiter for the logins that hash passwords here. It allows one login more than hashes, for its statements, and
   * one more of a known requester.
   */
  makeLoginLimiter(): LimitSignInWork;
};

type PasswordsOptions = {
  readonly parameters?: HashParameters;
  /** The share of the default concurrency and queue that this process has beside other workers. */
  readonly share?: number;
  /** The number of hashes that are computed at a time. */
  readonly concurrency?: number;
  /** The number of waiting requests of known requesters; unknown ones have half of it. Further ones are refused. */
  readonly maxWaiting?: number;
};

/** One of the four threads of libuv stays free for files and host names. */
const HASHING_THREADS = 3;
/** A hash occupies a processor and 19 MiB, so half of the processors stay free for other work. */
const DEFAULT_CONCURRENCY = Math.max(1, Math.min(HASHING_THREADS, Math.floor(availableParallelism() / 2)));
/** A queue of about three seconds of work for each thread. */
const DEFAULT_MAX_WAITING = 100 * DEFAULT_CONCURRENCY;
/** The requester of tools, which have no clients. */
const NO_REQUESTER: SignInRequester = { address: null, isKnown: true };

/** Hashes and compares passwords off the event loop, a few at a time. */
export function makePasswords({
  parameters = DEFAULT_PARAMETERS,
  share = 1,
  concurrency = Math.max(1, Math.floor(DEFAULT_CONCURRENCY * share)),
  maxWaiting = Math.ceil(DEFAULT_MAX_WAITING * share),
}: PasswordsOptions = {}): Passwords {
  const limited = makeSignInLimiter(concurrency, maxWaiting);
  const dummy = dummyHash(parameters);
  return {
    hash: (password, requester = NO_REQUESTER) => limited(requester, () => hashPassword(parameters, password)),
    hashLike: (phc, password, requester = NO_REQUESTER) => limited(requester, () => hashLike(phc, password)),
    matches: (phc, password, requester = NO_REQUESTER) =>
      limited(requester, () => matchesHash(phc !== null && isPasswordHash(phc) ? phc : dummy, password)),
    isOutdated: (phc) => isOutdated(phc, parameters),
    makeLoginLimiter: () => makeSignInLimiter(concurrency + 2, maxWaiting, 1),
  };
}

/** The cost of a hash; memory in KiB. */
export type HashParameters = { readonly memory: number; readonly passes: number; readonly parallelism: number };
type PasswordHash = { readonly parameters: HashParameters; readonly salt: Buffer; readonly tag: Buffer };

/** Returns a PHC string with a random salt. */
export function hashPassword(parameters: HashParameters, password: string): Promise<string> {
  return hashWithSalt(parameters, randomBytes(SALT_BYTES), TAG_BYTES, password);
}

/** Hashes with the parameters and salt of another hash: the results are equal if the passwords are. */
export function hashLike(phc: string, password: string): Promise<string> {
  const { parameters, salt, tag } = readPhc(phc);
  return hashWithSalt(parameters, salt, tag.length, password);
}

/** True if passwords can be compared with the hash. */
export function isPasswordHash(text: string): boolean {
  return PHC.test(text) || BCRYPT.test(text);
}

export async function matchesHash(phc: string, password: string): Promise<boolean> {
  if (BCRYPT.test(phc)) return matchesBcrypt(password, phc);
  const { parameters, salt, tag } = readPhc(phc);
  return timingSafeEqual(await tagOf(parameters, salt, tag.length, password), tag);
}

/** A hash that matches no password, to compare with for unknown users in the same time. */
export function dummyHash(parameters: HashParameters): string {
  return toPhc({ parameters, salt: randomBytes(SALT_BYTES), tag: randomBytes(TAG_BYTES) });
}

export function isOutdated(phc: string, current: HashParameters): boolean {
  if (BCRYPT.test(phc)) return true;
  const { memory, passes, parallelism } = readPhc(phc).parameters;
  return memory !== current.memory || passes !== current.passes || parallelism !== current.parallelism;
}

async function hashWithSalt(
  parameters: HashParameters,
  salt: Buffer,
  bytes: number,
  password: string,
): Promise<string> {
  return toPhc({ parameters, salt, tag: await tagOf(parameters, salt, bytes, password) });
}

/** NFKC makes passwords equal that keyboards encode differently. */
function tagOf(parameters: HashParameters, nonce: Buffer, tagLength: number, password: string): Promise<Buffer> {
  return derive("argon2id", { ...parameters, message: password.normalize("NFKC"), nonce, tagLength });
}

function toPhc({ parameters: { memory, passes, parallelism }, salt, tag }: PasswordHash): string {
  return `$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$${base64(salt)}$${base64(tag)}`;
}

function readPhc(phc: string): PasswordHash {
  const match = PHC.exec(phc);
  if (!match) throw new Error("A stored password hash is not one of argon2id");
  const [, memory, passes, parallelism, salt, tag] = match;
  return {
    parameters: { memory: Number(memory), passes: Number(passes), parallelism: Number(parallelism) },
    salt: Buffer.from(salt!, "base64"),
    tag: Buffer.from(tag!, "base64"),
  };
}

function base64(bytes: Buffer): string {
  return bytes.toString("base64").replace(/=+$/, "");
}
