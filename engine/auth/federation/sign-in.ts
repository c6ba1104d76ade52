import { type AsOwner, inTransaction } from "../../database/as-owner.ts";
import { ApiError } from "../../errors.ts";
import { accountDisabled } from "../refusals.ts";
import { newSecret } from "../secret.ts";
import { SENDER, type Sender, senderValue } from "../sender.ts";
import type { Audited } from "./audit.ts";
import type { Departures, RequestedSignIn, Wish } from "./departures.ts";
import type { Ending, Land } from "./landing.ts";
import type { Protocols } from "./protocols.ts";
import type { Arrival, Provider, Statement } from "./provider.ts";
import type { Providers } from "./providers.ts";
import type { RedirectTargets } from "./redirect-targets.ts";
import {
  accountConflict,
  emailMissing,
  identityTaken,
  inWords,
  signInEnded,
  signUpsClosed,
  statementRefused,
} from "./refusals.ts";
import type { SecondFactor } from "./second-factor.ts";

export type SignIn = {
  /** The address at the provider that the browser is to be sent to. */
  begin(
    name: string,
    requested: RequestedSignIn,
    browser: string,
    sender: Sender,
  ): Promise<{ address: string; isPosted: boolean }>;
  /** Whatever the browser has brought back. */
  finish(name: string, arrival: Arrival, browser: string, sender: Sender): Promise<Ending>;
};

type Options = {
  readonly asOwner: AsOwner;
  readonly providers: Providers;
  readonly protocols: Protocols;
  readonly departures: Departures;
  readonly audited: Audited;
  readonly land: Land;
  readonly secondFactor: Pick<SecondFactor, "await">;
  readonly readTarget: RedirectTargets;
};

const REFUSALS = {
  gone: signInEnded,
  replayed: () => statementRefused(new Error("The assertion was accepted before")),
  conflict: accountConflict,
  closed: signUpsClosed,
  nameless: emailMissing,
  taken: identityTaken,
  ended: signInEnded,
  disabled: accountDisabled,
};
type Refusal = keyof typeof REFUSALS;
type Outcome = "passed" | "linked" | "code_missing" | Refusal;

/** In bytes: the standards say 256 characters, and beyond some 2,700 bytes, with the issuer's, no index would hold it. */
const LONGEST_INDEXED = 1_024;
const PASS = `select * from auth.pass_federation($2, $3, $4, $5, $6, ${SENDER})`;

export function makeSignIn(options: Options): SignIn {
  const { asOwner, providers, protocols, departures, audited, land, secondFactor, readTarget } = options;

  /** What is refused is an outcome, so that a message stays spent. */
  const pass = async (
    { name: provider }: Provider,
    { leftAt, ...wish }: Wish & { readonly leftAt: Date },
    { subject, signOut, ...statement }: Statement,
    browser: string,
    sender: Sender,
  ): Promise<Ending | Refusal> => {
    const values = [senderValue(sender), provider, subject, JSON.stringify(toClaims(statement)), wish.userId, leftAt];
    return inTransaction(asOwner, async (client) => {
      const { rows } = await client.query<{ outcome: Outcome; user_id: string }>(PASS, values);
      const { outcome, user_id: userId } = rows[0]!;
      const landed = { provider, userId, wish, signOut };
      switch (outcome) {
        case "passed":
          return land(client, landed, sender);
        case "linked":
          return { kind: "linked", redirectTo: wish.redirectTo };
        case "code_missing":
          await secondFactor.await(client, landed, browser);
          return { kind: "code_required" };
        default:
          return outcome;
      }
    });
  };

  return {
    async begin(name, requested, browser, sender) {
      const provider = await providers.find(name);
      return audited(name, sender, async () => {
        const redirectTo = readTarget(requested.redirectTo);
        if (requested.mode === "token" && redirectTo === null) throw targetMissing(requested.redirectTo.field);
        const state = newSecret();
        const { address, kept } = await inWords(() => protocols.of(provider).depart(state));
        await departures.remember(
          state,
          { provider: name, purpose: "sign-in", browser },
          { ...requested, redirectTo },
          kept,
        );
        return { address, isPosted: provider.kind === "saml" };
      });
    },

    async finish(name, arrival, browser, sender) {
      const provider = await providers.find(name);
      return audited(name, sender, async () => {
        const protocol = protocols.of(provider);
        const state = protocol.stateOf(arrival);
        const { wish, leftAt, kept } = await departures.recall(state, { provider: name, purpose: "sign-in", browser });
        const statement = inWholeCharacters(await protocol.arrive(arrival, state, kept));
        const result = await pass(provider, { ...wish, leftAt }, statement, browser, sender);
        if (typeof result === "string") throw REFUSALS[result]();
        return result;
      });
    },
  };
}

/**
 * Postgres has no place for the character zero, nor UTF-8 for half a character. A name does without: one that was cut
 * may end with half of one. Of who it is nothing may be left out.
 */
function inWholeCharacters(statement: Statement): Statement {
  const { subject, signOut, message, email, name } = statement;
  const indexed = [subject, signOut.subject, message?.id ?? ""];
  const isWhole = (text: string) => text.isWellFormed() && !text.includes("\0");
  if (subject === "" || indexed.some((text) => Buffer.byteLength(text) > LONGEST_INDEXED)) {
    throw statementRefused(new Error("Its subject is empty, or what it is found by is too long"));
  }
  if (![...indexed, email ?? ""].every(isWhole)) {
    throw statementRefused(new Error("Its subject, or its address, is no text of whole characters"));
  }
  return { ...statement, name: name === null ? null : name.toWellFormed().replaceAll("\0", "") };
}

function toClaims({ email, isEmailVerified, name, hasSecondFactor, message }: Omit<Statement, "subject" | "signOut">) {
  return {
    email,
    email_verified: isEmailVerified,
    name,
    second_factor: hasSecondFactor,
    ...(message && { message_id: message.id, message_expires_at: message.expiresAt }),
  };
}

function targetMissing(field: string): ApiError {
  const message = "Say where the code for the tokens is to be sent.";
  return new ApiError(400, "MISSING_FIELD", message, { details: [{ field, message }] });
}
