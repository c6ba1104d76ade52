import { type AsOwner, inTransaction } from "../../database/as-owner.ts";
import { digestOf, newSecret } from "../secret.ts";
import { SENDER, type Sender, senderValue } from "../sender.ts";
import type { Audited } from "./audit.ts";
import type { Departures, Wish } from "./departures.ts";
import { unsealHint } from "./landing.ts";
import type { Protocols } from "./protocols.ts";
import type { Arrival, Farewell, Kept } from "./provider.ts";
import type { Providers } from "./providers.ts";
import type { RedirectTargets, RequestedTarget } from "./redirect-targets.ts";
import { inWords, statementRefused } from "./refusals.ts";

export type SignOut = {
  /** Where the browser ends the provider's session too, which that one of ours came from; null when nowhere. */
  signOutAddress(name: string, session: string, redirectTo: RequestedTarget, browser: string): Promise<string | null>;
  /** Where to go on to of who comes back; null when nowhere. The provider itself may send somebody, to end a session. */
  finishSignOut(name: string, arrival: Arrival, browser: string, sender: Sender): Promise<string | null>;
};

type Options = {
  readonly asOwner: AsOwner;
  readonly providers: Providers;
  readonly protocols: Protocols;
  readonly departures: Departures;
  readonly audited: Audited;
  readonly readTarget: RedirectTargets;
};

const FIND = "select sign_out_hint from auth.federation_sessions where session_hash = $1 and provider = $2";
const END = `select auth.end_federation_sessions($2, $3, $4, $5, $6, ${SENDER}) as ended`;
const NOTHING_KEPT: Kept = { nonce: null, codeVerifier: null, requestId: null };

export function makeSignOut({ asOwner, providers, protocols, departures, audited, readTarget }: Options): SignOut {
  /** The provider ends all that came from its session. */
  const obey = async (name: string, farewell: Farewell & { kind: "asked" }, sender: Sender): Promise<string> => {
    const { message, subject, sessionIndex } = farewell;
    const values = [senderValue(sender), name, subject, sessionIndex, message.id, message.expiresAt];
    const { rows } = await inTransaction(asOwner, (client) => client.query<{ ended: number | null }>(END, values));
    const { ended } = rows[0]!;
    if (ended === null) throw statementRefused(new Error("The request to sign out was obeyed before"));
    return inWords(() => farewell.answerAddress(ended > 0));
  };

  return {
    async signOutAddress(name, session, redirectTo, browser) {
      const wish: Wish = { mode: "session", redirectTo: readTarget(redirectTo), codeChallenge: null, userId: null };
      const provider = await providers.find(name);
      const { rows } = await asOwner((client) =>
        client.query<{ sign_out_hint: string }>(FIND, [digestOf(session), name]),
      );
      if (!rows[0]) return null;
      const [state, hint] = [newSecret(), unsealHint(rows[0].sign_out_hint, session)];
      const address = await inWords(() => protocols.of(provider).signOutAddress(hint, state));
      if (address === null) return null;
      await departures.remember(state, { provider: name, purpose: "sign-out", browser }, wish, NOTHING_KEPT);
      return address;
    },

    async finishSignOut(name, arrival, browser, sender) {
      const provider = await providers.find(name);
      return audited(name, sender, async () => {
        const farewell = await inWords(() => protocols.of(provider).readFarewell(arrival));
        if (farewell.kind === "asked") return obey(name, farewell, sender);
        // Whoever comes back without having left is signed out as well.
        const recalled = await departures
          .recall(farewell.state, { provider: name, purpose: "sign-out", browser })
          .catch(() => null);
        return recalled?.wish.redirectTo ?? null;
      });
    },
  };
}
