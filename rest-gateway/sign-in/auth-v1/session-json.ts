import type { AuthSession } from "#accounts";

/** Converts a session to the form that auth-js stores. */
export function toSessionJson({ tokens: { accessToken, refreshToken, expiresIn }, user }: AuthSession): object {
  return {
    access_token: accessToken,
    token_type: "bearer",
    expires_in: expiresIn,
    expires_at: Math.floor(Date.now() / 1000) + expiresIn,
    refresh_token: refreshToken,
    user,
  };
}
