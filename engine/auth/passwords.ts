import { availableParallelism } from "node:os";
import { unavailable } from "../errors.ts";
import {
  DEFAULT_PARAMETERS,
  dummyHash,
  type HashParameters,
  hashLike,
  hashPassword,
  isOutdated,
  isPasswordHash,
  matchesHash,
} from "./password-hash.ts";

export type Passwords = {
  hash(password: string): Promise<string>;
  /** Hashes with the salt of another hash; the results are equal if the passwords are. */
  hashLike(phc: string, password: string): Promise<string>;
  /** Takes the same time if the hash is null (unknown user) or of another algorithm, and returns false then. */
  matches(phc: string | null, password: string): Promise<boolean>;
  isOutdated(phc: string): boolean;
};

type Options = {
  readonly parameters?: HashParameters;
  /** How many hashes are computed at a time. */
  readonly concurrency?: number;
  /** How many more may wait; further ones are refused. */
  readonly maxWaiting?: number;
};

/** A hash occupies a processor and 19 MiB, so half of the processors stay free for other work. */
const CONCURRENCY = Math.max(1, Math.min(2, Math.floor(availableParallelism() / 2)));
/** About three seconds of work. */
const MAX_WAITING = 100;

/** Hashes and compares passwords off the event loop, a few at a time. */
export function makePasswords({
  parameters = DEFAULT_PARAMETERS,
  concurrency: atOnce = CONCURRENCY,
  maxWaiting: waiting = MAX_WAITING,
}: Options = {}): Passwords {
  const limited = makeLimiter(atOnce, waiting);
  const dummy = dummyHash(parameters);
  return {
    hash: (password) => limited(() => hashPassword(parameters, password)),
    hashLike: (phc, password) => limited(() => hashLike(phc, password)),
    matches: (phc, password) => limited(() => matchesHash(phc !== null && isPasswordHash(phc) ? phc : dummy, password)),
    isOutdated: (phc) => isOutdated(phc, parameters),
  };
}

function makeLimiter(atOnce: number, most: number): <T>(work: () => Promise<T>) => Promise<T> {
  const waiting: (() => void)[] = [];
  let running = 0;

  return async (work) => {
    if (running < atOnce) running++;
    else if (waiting.length < most) await new Promise<void>((resolve) => waiting.push(resolve));
    else throw unavailable("Too many sign-ins at the moment; try again soon.");
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      // The next waiting one takes over this slot.
      if (next) next();
      else running--;
    }
  };
}
