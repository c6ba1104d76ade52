import type pg from "pg";
import { type AsOwner, inTransaction } from "../../database/as-owner.ts";
import { accountDisabled, wrongCodeAtLogin } from "../auth-errors.ts";
import { CLIENT_INFO_SQL, type ClientInfo, clientInfoParameter } from "../client-info.ts";
import type { FactorProof, LoginAttempts } from "../login-attempts.ts";
import { digestOf } from "../random-secret.ts";
import type { AuditRefusals } from "./audit-refusals.ts";
import {
  type CompleteSignIn,
  decryptHint,
  encryptHint,
  type SignInResult,
  type VerifiedSignIn,
} from "./complete-sign-in.ts";
import { signInEnded } from "./federation-errors.ts";
import type { SignInOptions } from "./oauth-state-store.ts";

/** The code step after a federated sign-in, for accounts with an authenticator app. */
export type SecondFactorStep = {
  savePending(client: pg.ClientBase, verified: VerifiedSignIn, browser: string): Promise<void>;
  finish(code: string, browser: string, clientInfo: ClientInfo): Promise<SignInResult>;
};

type PendingRow = {
  readonly provider: string;
  readonly user_id: string;
  readonly mode: SignInOptions["mode"];
  readonly redirect_to: string | null;
  readonly code_challenge: string | null;
  readonly sign_out_hint: string;
};
type Options = {
  readonly asOwner: AsOwner;
  readonly attempts: LoginAttempts;
  readonly completeSignIn: CompleteSignIn;
  readonly auditRefusals: AuditRefusals;
};

const ERRORS = { code: wrongCodeAtLogin, ended: signInEnded, disabled: accountDisabled };
type SecondFactorOutcome = "passed" | keyof typeof ERRORS;

const NO_PROOF: FactorProof = { step: null, backupCodeHash: null };
/** In seconds. */
const PENDING_LIFETIME_SECONDS = 10 * 60;
const FIND = `
  select login.* from auth.federation_logins as login join auth.providers on providers.name = login.provider
  where login.browser_hash = $1 and login.expires_at > now() and providers.enabled`;
const PASS = `select auth.pass_federated_factor($2, $3, $4, $5, $6, $7, ${CLIENT_INFO_SQL}) as outcome`;

export function makeSecondFactorStep({ asOwner, attempts, completeSignIn, auditRefusals }: Options): SecondFactorStep {
  const find = async (browser: string): Promise<VerifiedSignIn> => {
    const { rows } = await asOwner((client) => client.query<PendingRow>(FIND, [digestOf(browser)]));
    if (!rows[0]) throw signInEnded();
    const { provider, user_id: userId, mode, redirect_to: redirectTo, code_challenge: codeChallenge } = rows[0];
    const options = { mode, redirectTo, codeChallenge, userId: null };
    return { provider, userId, options, signOut: decryptHint(rows[0].sign_out_hint, browser) };
  };

  return {
    async savePending(client, { provider, userId, options, signOut }, browser) {
      const row: PendingRow = {
        provider,
        user_id: userId,
        mode: options.mode,
        redirect_to: options.redirectTo,
        code_challenge: options.codeChallenge,
        sign_out_hint: encryptHint(signOut, browser),
      };
      const values = [JSON.stringify(row), digestOf(browser)];
      await client.query(`select auth.hold_federation($1, $2, ${PENDING_LIFETIME_SECONDS})`, values);
    },

    async finish(code, browser, clientInfo) {
      const verified = await auditRefusals(null, clientInfo, () => find(browser));
      const attempt = await attempts.beginFor(verified.userId, clientInfo);
      const { countedName, factorSecret } = attempt;
      // The app may have been disabled since the sign-in started.
      const proof = factorSecret === null ? NO_PROOF : await attempts.verifyCode(attempt, code);
      if (!proof) {
        await attempts.fail(attempt, "code");
        throw wrongCodeAtLogin();
      }
      const { step, backupCodeHash } = proof;
      const values = [
        clientInfoParameter(clientInfo),
        digestOf(browser),
        countedName,
        verified.userId,
        factorSecret,
        step,
        backupCodeHash,
      ];
      const result = await inTransaction(
        asOwner,
        async (client): Promise<SignInResult | Exclude<SecondFactorOutcome, "passed">> => {
          const { rows } = await client.query<{ outcome: SecondFactorOutcome }>(PASS, values);
          const { outcome } = rows[0]!;
          return outcome === "passed" ? completeSignIn(client, verified, clientInfo) : outcome;
        },
      );
      if (typeof result === "string") throw ERRORS[result]();
      return result;
    },
  };
}
