import { unauthorized } from "../caller/unauthorized.ts";
import { type AsOwner, inTransaction } from "../database/as-owner.ts";
import { CLIENT_INFO_SQL, type ClientInfo, clientInfoParameter } from "./client-info.ts";
import { decryptText, encryptText } from "./encrypted-text.ts";
import { LIFETIMES } from "./lifetimes.ts";
import type { OpenSignIn } from "./login.ts";
import { digestOf } from "./random-secret.ts";
import type { TokenClaims, TokenIssuer, TokenPair } from "./token-issuer.ts";

export type Tokens = {
  /** Starts a family of refresh tokens. */
  readonly open: OpenSignIn<TokenPair>;
  /** Issues the next pair. Reusing a refresh token revokes its family, except for an immediate retry with the same `retryKey`. */
  refresh(
    refreshToken: string,
    clientInfo: ClientInfo,
    options?: { readonly retryKey?: string | null },
  ): Promise<TokenPair>;
  /** Revokes all refresh tokens of the user. */
  revoke(userId: string, clientInfo: ClientInfo): Promise<void>;
};

type Rotation =
  | { readonly outcome: "rotated"; readonly claims: TokenClaims }
  | { readonly outcome: "repeated"; readonly sealed_answer: Buffer }
  | { readonly outcome: "reused" | "ended" };

const OPEN = `select auth.open_tokens($2, $3, ${LIFETIMES.refreshToken}, ${CLIENT_INFO_SQL}) as claims`;
const ROTATE = `select * from auth.rotate_refresh_token($2, $3, ${LIFETIMES.refreshToken}, $4, ${CLIENT_INFO_SQL})`;
const STORE_ANSWER = `select auth.seal_answer($1, $2, $3, ${LIFETIMES.refreshRetry})`;

export function makeTokens(asOwner: AsOwner, mint: TokenIssuer): Tokens {
  return {
    async open(client, userId, clientInfo) {
      const refreshToken = mint.newRefreshToken(userId);
      const { rows } = await client.query<{ claims: TokenClaims }>(OPEN, [
        clientInfoParameter(clientInfo),
        userId,
        digestOf(refreshToken),
      ]);
      return mint.issuePair(rows[0]!.claims, refreshToken);
    },

    async refresh(refreshToken, clientInfo, { retryKey } = {}) {
      const { userId } = mint.readRefreshToken(refreshToken);
      const next = mint.newRefreshToken(userId);
      const usedDigest = digestOf(refreshToken);
      const retry = retryKey ? digestOf(retryKey) : null;
      // Throw only after the transaction, so that a revocation is committed.
      const pair = await inTransaction(asOwner, async (client) => {
        const { rows } = await client.query<Rotation>(ROTATE, [
          clientInfoParameter(clientInfo),
          usedDigest,
          digestOf(next),
          retry,
        ]);
        const rotation = rows[0]!;
        if (rotation.outcome === "repeated") return JSON.parse(decryptText(rotation.sealed_answer, refreshToken));
        if (rotation.outcome !== "rotated") return null;
        const made = mint.issuePair(rotation.claims, next);
        if (retry)
          await client.query(STORE_ANSWER, [usedDigest, retry, encryptText(JSON.stringify(made), refreshToken)]);
        return made;
      });
      if (!pair) {
        throw unauthorized(
          "INVALID_TOKEN",
          "The refresh token was used before, or has expired; sign in again.",
          "JWT expired",
        );
      }
      return pair;
    },

    async revoke(userId, clientInfo) {
      await inTransaction(asOwner, (client) =>
        client.query(`select auth.revoke_refresh_tokens($2, ${CLIENT_INFO_SQL})`, [
          clientInfoParameter(clientInfo),
          userId,
        ]),
      );
    },
  };
}
