import { ApiError, clientNetwork, clientSite, unavailable } from "#runtime";
import { FairLimiter, type WorkShare } from "#runtime/concurrency";

/** Who work of a sign-in is done for: requesters take turns by address and by account. */
export type SignInRequester = {
  readonly address: string | null;
  /** The name that attempts are counted by, or the id of the user. */
  readonly account?: string | null;
};

export type LimitSignInWork = <T>(requester: SignInRequester, work: () => Promise<T>) => Promise<T>;

/** A site (/48) has many networks (/64), but a provider may give each of them to another customer. */
const TURNS_OF_SITE = 1 / 4;

/** Does a few things at a time. Half of what may wait is the most for one address or account. */
export function makeSignInLimiter(concurrency: number, maxWaiting: number): LimitSignInWork {
  const limiter = new FairLimiter({
    concurrency,
    maxWaiting,
    maxWaitingOfKey: Math.ceil(maxWaiting / 2),
    refusalOfAll: () => unavailable("Too many sign-ins at the moment; try again soon."),
    refusalOfKey: tooManyWaiting,
  });
  return (requester, work) => limiter.run(sharesOf(requester), work);
}

function tooManyWaiting(): ApiError {
  const message = "Too many sign-ins of your network or of this account at the moment; try again soon.";
  return new ApiError("rateLimited", "TOMNY", message, { retryAfterSeconds: 2 });
}

function sharesOf({ address, account }: SignInRequester): readonly WorkShare[] {
  const network = clientNetwork(address);
  const site = clientSite(address);
  return [
    { key: `network ${network}`, turns: 1 },
    ...(site === network ? [] : [{ key: `site ${site}`, turns: TURNS_OF_SITE }]),
    ...(account ? [{ key: `account ${account.toLowerCase()}`, turns: 1 }] : []),
  ];
}
