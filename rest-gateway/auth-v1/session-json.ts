import type { TokenPair } from "../../engine/accounts/token-pairs.ts";

/** A session as auth-js stores it; `user` is the user's JSON. */
export function toSessionJson({ accessToken, refreshToken, expiresIn }: TokenPair, user: object): object {
  return {
    access_token: accessToken,
    token_type: "bearer",
    expires_in: expiresIn,
    expires_at: Math.floor(Date.now() / 1000) + expiresIn,
    refresh_token: refreshToken,
    user,
  };
}
