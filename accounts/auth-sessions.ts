import type pg from "pg";
import { confirmationRequired } from "./auth-errors.ts";
import type { ClientInfo } from "./identity/client-info.ts";
import type { OpenSignIn } from "./login.ts";
import { awaitsConfirmation, readUserJson, type UserJson } from "./own-account.ts";
import type { SessionTokens, TokenPairs, TokenSignIn } from "./token-pairs.ts";
import { sessionEnded } from "./validate-claims.ts";

/** A sign-in by tokens, with the user as clients of Supabase Auth store it. */
export type AuthSession = { readonly tokens: SessionTokens; readonly user: UserJson };

/** The sign-ins of such clients. Each begins in the transaction that verified the user. */
export type AuthSessions = {
  readonly open: OpenSignIn<AuthSession>;
  /** Returns null for a user who has to confirm an address or a number first. */
  readonly openConfirmed: OpenSignIn<AuthSession | null>;
  readonly openAnonymous: OpenSignIn<AuthSession>;
  /** Continues a sign-in that has proved another factor by its access token. Throws if it has ended. */
  continueSignIn(client: pg.ClientBase, signIn: TokenSignIn, clientInfo: ClientInfo): Promise<AuthSession>;
  /** Throws for a user who has to confirm an address or a number first; the refresh token stays unused then. */
  refresh(refreshToken: string, clientInfo: ClientInfo): Promise<AuthSession>;
};

type AuthSessionsOptions = {
  readonly sessionTokens: TokenPairs<SessionTokens>;
  readonly readUser: (userId: string) => Promise<UserJson>;
  /** True if users may sign in without having confirmed an address or a number. */
  readonly autoConfirm: boolean;
};

export function makeAuthSessions({ sessionTokens, readUser, autoConfirm }: AuthSessionsOptions): AuthSessions {
  const mustConfirm = async (client: pg.ClientBase, userId: string): Promise<boolean> =>
    !autoConfirm && awaitsConfirmation(await readUserJson(client, userId));

  /** The check is needed because the tokens of a registration at /auth may be exchanged, too. */
  const requireConfirmed = async (client: pg.ClientBase, userId: string): Promise<void> => {
    if (await mustConfirm(client, userId)) throw confirmationRequired();
  };

  const open: OpenSignIn<AuthSession> = async (client, userId, clientInfo, proof) => {
    const tokens = await sessionTokens.open(client, userId, clientInfo, proof);
    return { tokens, user: await readUserJson(client, userId) };
  };

  return {
    open,
    openConfirmed: async (client, userId, clientInfo, proof) =>
      (await mustConfirm(client, userId)) ? null : open(client, userId, clientInfo, proof),
    openAnonymous: (client, userId, clientInfo) => open(client, userId, clientInfo, { methods: ["anonymous"], aal: 1 }),
    async continueSignIn(client, signIn, clientInfo) {
      const tokens = await sessionTokens.continueSignIn(client, signIn, clientInfo);
      if (!tokens) throw sessionEnded();
      return { tokens, user: await readUserJson(client, signIn.userId) };
    },
    async refresh(refreshToken, clientInfo) {
      const tokens = await sessionTokens.refresh(refreshToken, clientInfo, { check: requireConfirmed });
      return { tokens, user: await readUser(tokens.userId) };
    },
  };
}
