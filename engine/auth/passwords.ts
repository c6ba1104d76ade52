import { availableParallelism } from "node:os";
import { unavailable } from "../errors.ts";
import {
  type HashParameters,
  hashLike,
  hashOfNobody,
  hashPassword,
  isOutdated,
  isPasswordHash,
  matchesHash,
  RECOMMENDED,
} from "./password-hash.ts";

export type Passwords = {
  hash(password: string): Promise<string>;
  /** By the salt of that hash: equal to it when the passwords are. */
  hashLike(phc: string, password: string): Promise<string>;
  /** Takes as long for nobody's hash, which is null, and for one of another kind, which no password matches. */
  matches(phc: string | null, password: string): Promise<boolean>;
  isOutdated(phc: string): boolean;
};

type Options = {
  readonly parameters?: HashParameters;
  /** How many are worked on at a time. */
  readonly atOnce?: number;
  /** How many more may wait; who comes then is told to come back. */
  readonly waiting?: number;
};

/** Hashing takes a processor for some time, and each one 19 MiB: half of the processors are left to all that is not a sign-in. */
const AT_ONCE = Math.max(1, Math.min(2, Math.floor(availableParallelism() / 2)));
/** About as many as are done in three seconds. */
const WAITING = 100;

/** Hashes and compares off the event loop, a few at a time. */
export function makePasswords({
  parameters = RECOMMENDED,
  atOnce = AT_ONCE,
  waiting = WAITING,
}: Options = {}): Passwords {
  const inTurn = takeTurns(atOnce, waiting);
  const nobody = hashOfNobody(parameters);
  return {
    hash: (password) => inTurn(() => hashPassword(parameters, password)),
    hashLike: (phc, password) => inTurn(() => hashLike(phc, password)),
    matches: (phc, password) => inTurn(() => matchesHash(phc !== null && isPasswordHash(phc) ? phc : nobody, password)),
    isOutdated: (phc) => isOutdated(phc, parameters),
  };
}

function takeTurns(atOnce: number, most: number): <T>(work: () => Promise<T>) => Promise<T> {
  const waiting: (() => void)[] = [];
  let running = 0;

  return async (work) => {
    if (running < atOnce) running++;
    else if (waiting.length < most) await new Promise<void>((resolve) => waiting.push(resolve));
    else throw unavailable("Too many passwords are being looked at; try again in a moment.");
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      // Whoever comes next takes over the place.
      if (next) next();
      else running--;
    }
  };
}
