import { type Accounts, type OpenSignIn, readUserJson, type SessionTokens, type UserJson } from "#accounts";

/** A sign-in by tokens, with the user as clients store it. */
export type AuthSession = { readonly tokens: SessionTokens; readonly user: UserJson };

/** Creates the session in the transaction that verified the sign-in. */
export function makeOpenAuthSession({ sessionTokens }: Pick<Accounts, "sessionTokens">): OpenSignIn<AuthSession> {
  return async (client, userId, clientInfo, proof) => {
    const tokens = await sessionTokens.open(client, userId, clientInfo, proof);
    return { tokens, user: await readUserJson(client, userId) };
  };
}

/** A session as auth-js stores it. */
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
