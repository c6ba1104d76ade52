import type pg from "pg";
import { type AsOwner, inTransaction } from "../../database/as-owner.ts";
import type { Attempts, Proof } from "../attempts.ts";
import { accountDisabled, wrongCodeAtLogin } from "../refusals.ts";
import { digestOf } from "../secret.ts";
import { SENDER, type Sender, senderValue } from "../sender.ts";
import type { Audited } from "./audit.ts";
import type { Wish } from "./departures.ts";
import { type Ending, type Land, type Landed, sealHint, unsealHint } from "./landing.ts";
import { signInEnded } from "./refusals.ts";

/** Who has come back from a provider, and owes a code of the authenticator app before they are let in. */
export type SecondFactor = {
  await(client: pg.ClientBase, landed: Landed, browser: string): Promise<void>;
  land(code: string, browser: string, sender: Sender): Promise<Ending>;
};

type Row = {
  readonly provider: string;
  readonly user_id: string;
  readonly mode: Wish["mode"];
  readonly redirect_to: string | null;
  readonly code_challenge: string | null;
  readonly sign_out_hint: string;
};
type Options = {
  readonly asOwner: AsOwner;
  readonly attempts: Attempts;
  readonly land: Land;
  readonly audited: Audited;
};

const REFUSALS = { code: wrongCodeAtLogin, ended: signInEnded, disabled: accountDisabled };
type Outcome = "passed" | keyof typeof REFUSALS;

const NO_PROOF: Proof = { step: null, backupCodeHash: null };
/** In seconds. */
const PATIENCE = 10 * 60;
const FIND = `
  select login.* from auth.federation_logins as login join auth.providers on providers.name = login.provider
  where login.browser_hash = $1 and login.expires_at > now() and providers.enabled`;
const PASS = `select auth.pass_federated_factor($2, $3, $4, $5, $6, $7, ${SENDER}) as outcome`;

export function makeSecondFactor({ asOwner, attempts, land, audited }: Options): SecondFactor {
  const find = async (browser: string): Promise<Landed> => {
    const { rows } = await asOwner((client) => client.query<Row>(FIND, [digestOf(browser)]));
    if (!rows[0]) throw signInEnded();
    const { provider, user_id: userId, mode, redirect_to: redirectTo, code_challenge: codeChallenge } = rows[0];
    const wish = { mode, redirectTo, codeChallenge, userId: null };
    return { provider, userId, wish, signOut: unsealHint(rows[0].sign_out_hint, browser) };
  };

  return {
    async await(client, { provider, userId, wish, signOut }, browser) {
      const row: Row = {
        provider,
        user_id: userId,
        mode: wish.mode,
        redirect_to: wish.redirectTo,
        code_challenge: wish.codeChallenge,
        sign_out_hint: sealHint(signOut, browser),
      };
      const values = [JSON.stringify(row), digestOf(browser)];
      await client.query(`select auth.hold_federation($1, $2, ${PATIENCE})`, values);
    },

    async land(code, browser, sender) {
      const landed = await audited(null, sender, () => find(browser));
      const attempt = await attempts.beginFor(landed.userId, sender);
      const { countedName, factorSecret } = attempt;
      // Who has disabled the app meanwhile owes none.
      const proof = factorSecret === null ? NO_PROOF : await attempts.readCode(attempt, code);
      if (!proof) {
        await attempts.fail(attempt, "code");
        throw wrongCodeAtLogin();
      }
      const { step, backupCodeHash } = proof;
      const values = [
        senderValue(sender),
        digestOf(browser),
        countedName,
        landed.userId,
        factorSecret,
        step,
        backupCodeHash,
      ];
      const result = await inTransaction(asOwner, async (client): Promise<Ending | Exclude<Outcome, "passed">> => {
        const { rows } = await client.query<{ outcome: Outcome }>(PASS, values);
        const { outcome } = rows[0]!;
        return outcome === "passed" ? land(client, landed, sender) : outcome;
      });
      if (typeof result === "string") throw REFUSALS[result]();
      return result;
    },
  };
}
