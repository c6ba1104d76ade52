import { bypassesPolicies } from "#catalog";
import { type Caller, isAdministrator } from "./identity/caller.ts";

/** Counts accounts that a client creates against SIGN_UP_LIMIT of its address, and throws above the limit. */
export type LimitSignUps = (address: string | null, count?: number) => Promise<void>;

/** The same for rows of users that a caller creates. */
export type LimitCreatedUsers = (
  caller: Pick<Caller, "role">,
  address: () => string | null,
  count?: number,
) => Promise<void>;

type LimitCreatedUsersOptions = {
  readonly limitSignUps: LimitSignUps;
  readonly catalog: () => Parameters<typeof bypassesPolicies>[0];
};

/** A caller who adds a user counts as a client who signs up, signed in or not, except for administrators and servers. */
export function makeCreatedUsersLimit({ limitSignUps, catalog }: LimitCreatedUsersOptions): LimitCreatedUsers {
  return async (caller, address, count) => {
    if (isAdministrator(caller) || bypassesPolicies(catalog(), caller.role)) return;
    await limitSignUps(address(), count);
  };
}
