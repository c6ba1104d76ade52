import { type AsOwner, makeOwnerFunction } from "#postgres/database";
import type { LookUpKeys } from "#runtime/concurrency";
import type { Logger } from "#runtime/log";
import { type Claims, parseClaims } from "./identity/claims.ts";
import { readUserId } from "./user-id.ts";

/** The row of `auth.signers`. */
export type SignerState = {
  readonly is_account: boolean;
  /** False if the account, the API key or the grant has ended. */
  readonly stands: boolean;
  readonly role: string | null;
  readonly claims: Claims | null;
};

type SignerStateOptions = {
  readonly asOwner: AsOwner;
  readonly log: Pick<Logger, "warn">;
  /** The message for a login that may not look up states. */
  readonly warning: string;
};

/** Looks up the states of accounts, API keys and grants of applications by serialized claims. */
export function makeSignerStateQuery(options: SignerStateOptions): LookUpKeys<SignerState> {
  const queryAsOwner = makeOwnerFunction<SignerState & { readonly place: string }>({
    ...options,
    text: "select * from auth.signers($1, $2)",
  });
  return async (texts) => {
    const rows = await queryAsOwner([texts.map((text) => readUserId(parseClaims(text)!)), texts]);
    return new Map(rows.map((row) => [texts[Number(row.place) - 1]!, row]));
  };
}
