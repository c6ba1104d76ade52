import { unauthorized } from "../caller/unauthorized.ts";
import { type AsOwner, inTransaction } from "../database/as-owner.ts";
import { LIFETIMES } from "./lifetimes.ts";
import type { Opening } from "./login.ts";
import { seal, unseal } from "./sealed.ts";
import { digestOf } from "./secret.ts";
import { SENDER, type Sender, senderValue } from "./sender.ts";
import type { TokenClaims, TokenMint, TokenPair } from "./token-mint.ts";

export type Tokens = {
  /** Begins a family of refresh tokens. */
  readonly open: Opening<TokenPair>;
  /** The next pair. A token that was exchanged before ends its family, unless the same `retryKey` asks again at once. */
  refresh(refreshToken: string, sender: Sender, options?: { readonly retryKey?: string | null }): Promise<TokenPair>;
  /** Ends all refresh tokens of the user. */
  revoke(userId: string, sender: Sender): Promise<void>;
};

type Rotation =
  | { readonly outcome: "rotated"; readonly claims: TokenClaims }
  | { readonly outcome: "repeated"; readonly sealed_answer: Buffer }
  | { readonly outcome: "reused" | "ended" };

const OPEN = `select auth.open_tokens($2, $3, ${LIFETIMES.refreshToken}, ${SENDER}) as claims`;
const ROTATE = `select * from auth.rotate_refresh_token($2, $3, ${LIFETIMES.refreshToken}, $4, ${SENDER})`;
const SEAL = `select auth.seal_answer($1, $2, $3, ${LIFETIMES.refreshRetry})`;

export function makeTokens(asOwner: AsOwner, mint: TokenMint): Tokens {
  return {
    async open(client, userId, sender) {
      const refreshToken = mint.newRefreshToken(userId);
      const { rows } = await client.query<{ claims: TokenClaims }>(OPEN, [
        senderValue(sender),
        userId,
        digestOf(refreshToken),
      ]);
      return mint.pairOf(rows[0]!.claims, refreshToken);
    },

    async refresh(refreshToken, sender, { retryKey } = {}) {
      const { userId } = mint.readRefreshToken(refreshToken);
      const next = mint.newRefreshToken(userId);
      const spent = digestOf(refreshToken);
      const retry = retryKey ? digestOf(retryKey) : null;
      // An answer without a pair is an outcome too: what it revoked is to stay revoked.
      const pair = await inTransaction(asOwner, async (client) => {
        const { rows } = await client.query<Rotation>(ROTATE, [senderValue(sender), spent, digestOf(next), retry]);
        const rotation = rows[0]!;
        if (rotation.outcome === "repeated") return JSON.parse(unseal(rotation.sealed_answer, refreshToken));
        if (rotation.outcome !== "rotated") return null;
        const made = mint.pairOf(rotation.claims, next);
        if (retry) await client.query(SEAL, [spent, retry, seal(JSON.stringify(made), refreshToken)]);
        return made;
      });
      if (!pair) {
        throw unauthorized("INVALID_TOKEN", "The refresh token was used, or has ended; sign in again.", "JWT expired");
      }
      return pair;
    },

    async revoke(userId, sender) {
      await inTransaction(asOwner, (client) =>
        client.query(`select auth.revoke_refresh_tokens($2, ${SENDER})`, [senderValue(sender), userId]),
      );
    },
  };
}
