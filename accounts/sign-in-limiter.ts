import { ApiError, clientNetwork, clientRange, unavailable } from "#runtime";
import { FairLimiter, type WorkShare } from "#runtime/concurrency";

/** The requester of a sign-in's work. Requesters take turns by address and by account. */
export type SignInRequester = {
  readonly address: string | null;
  /** The name under which attempts are counted, or the id of the user. */
  readonly account?: string | null;
  /** True if this user has signed in from this network before, or has proved to be this user otherwise. */
  readonly isKnown?: boolean;
};

export type LimitSignInWork = <T>(requester: SignInRequester, work: () => Promise<T>) => Promise<T>;

/** An attacker may have many networks of a range, but a provider may assign each of them to another customer. */
const TURNS_OF_RANGE = 1 / 4;

/**
 * Runs a few sign-ins at a time and reserves some of these slots for known requesters. Known requesters go first and may
 * fill their queue; unknown ones have half the places, and are refused early. One address or account may occupy at most half
 * of the queue.
 */
export function makeSignInLimiter(concurrency: number, maxWaiting: number, reserved = 0): LimitSignInWork {
  const half = Math.ceil(maxWaiting / 2);
  const limiter = new FairLimiter({
    concurrency,
    reserved,
    maxWaiting: half,
    maxWaitingPreferred: maxWaiting,
    maxWaitingOfKey: half,
    refusalOfAll: () => unavailable("Too many sign-ins at the moment; try again soon."),
    refusalOfKey: tooManyWaiting,
  });
  return (requester, work) => limiter.run(sharesOf(requester), work, { isPreferred: requester.isKnown ?? false });
}

function tooManyWaiting(): ApiError {
  const message = "Too many sign-ins of your network or of this account at the moment; try again soon.";
  return new ApiError("rateLimited", "TOMNY", message, { retryAfterSeconds: 2 });
}

function sharesOf({ address, account }: SignInRequester): readonly WorkShare[] {
  return [
    { key: `network ${clientNetwork(address)}`, turns: 1 },
    { key: `range ${clientRange(address)}`, turns: TURNS_OF_RANGE },
    ...(account ? [{ key: `account ${account.toLowerCase()}`, turns: 1 }] : []),
  ];
}
