import { hash } from "node:crypto";
import type pg from "pg";
import { type AsOwner, inTransaction } from "../../database/as-owner.ts";
import { accountDisabled } from "../refusals.ts";
import { digestOf, newSecret } from "../secret.ts";
import { SENDER, type Sender, senderValue } from "../sender.ts";
import type { TokenPair } from "../token-mint.ts";
import type { Tokens } from "../tokens.ts";
import { signInEnded } from "./refusals.ts";

/** The tokens that a one-time code stands for, for who shows the verifier of its challenge. */
export type ExchangeCode = (code: string, verifier: string | null, sender: Sender) => Promise<TokenPair>;

type Outcome = "passed" | "wrong" | "disabled";

/** In seconds: the browser is on its way to the program, which asks at once. */
const CODE_LASTS = 60;
const ADD = `select auth.add_federation_code($1, $2, $3, ${CODE_LASTS})`;
const USE = `select * from auth.use_federation_code($2, $3, ${SENDER})`;

/** An address may carry a code: other than tokens it is good for little, once, and for a minute. */
export async function newCode(client: pg.ClientBase, userId: string, challenge: string | null): Promise<string> {
  const code = newSecret();
  await client.query(ADD, [digestOf(code), userId, challenge]);
  return code;
}

export function makeExchangeCode(asOwner: AsOwner, tokens: Pick<Tokens, "open">): ExchangeCode {
  return async (code, verifier, sender) => {
    const challenge = verifier === null ? null : hash("sha256", verifier, "base64url");
    const result = await inTransaction(asOwner, async (client): Promise<TokenPair | Exclude<Outcome, "passed">> => {
      const values = [senderValue(sender), digestOf(code), challenge];
      const { rows } = await client.query<{ outcome: Outcome; user_id: string }>(USE, values);
      const { outcome, user_id: userId } = rows[0]!;
      return outcome === "passed" ? tokens.open(client, userId, sender) : outcome;
    });
    if (result === "disabled") throw accountDisabled();
    if (result === "wrong") throw signInEnded();
    return result;
  };
}
