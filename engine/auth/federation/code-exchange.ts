import { hash } from "node:crypto";
import type pg from "pg";
import { type AsOwner, inTransaction } from "../../database/as-owner.ts";
import { accountDisabled } from "../auth-errors.ts";
import { CLIENT_INFO_SQL, type ClientInfo, clientInfoParameter } from "../client-info.ts";
import { digestOf, generateSecret } from "../random-secret.ts";
import type { TokenPair } from "../token-issuer.ts";
import type { Tokens } from "../tokens.ts";
import { signInEnded } from "./federation-errors.ts";

/** Exchanges a one-time code for tokens; requires the PKCE verifier if the sign-in had a challenge. */
export type ExchangeCode = (code: string, verifier: string | null, clientInfo: ClientInfo) => Promise<TokenPair>;

type ExchangeOutcome = "passed" | "wrong" | "disabled";

/** Short, because the application exchanges the code as soon as the browser delivers it. */
const CODE_LIFETIME_SECONDS = 60;
const ADD = `select auth.add_federation_code($1, $2, $3, ${CODE_LIFETIME_SECONDS})`;
const USE = `select * from auth.use_federation_code($2, $3, ${CLIENT_INFO_SQL})`;

/** A code is passed in the redirect URL instead of tokens, because it can be used only once and expires after a minute. */
export async function issueCode(client: pg.ClientBase, userId: string, challenge: string | null): Promise<string> {
  const code = generateSecret();
  await client.query(ADD, [digestOf(code), userId, challenge]);
  return code;
}

export function makeExchangeCode(asOwner: AsOwner, tokens: Pick<Tokens, "open">): ExchangeCode {
  return async (code, verifier, clientInfo) => {
    const challenge = verifier === null ? null : hash("sha256", verifier, "base64url");
    const result = await inTransaction(
      asOwner,
      async (client): Promise<TokenPair | Exclude<ExchangeOutcome, "passed">> => {
        const values = [clientInfoParameter(clientInfo), digestOf(code), challenge];
        const { rows } = await client.query<{ outcome: ExchangeOutcome; user_id: string }>(USE, values);
        const { outcome, user_id: userId } = rows[0]!;
        return outcome === "passed" ? tokens.open(client, userId, clientInfo) : outcome;
      },
    );
    if (result === "disabled") throw accountDisabled();
    if (result === "wrong") throw signInEnded();
    return result;
  };
}
