import type pg from "pg";
import { type AsOwner, inOwnerTransaction } from "#postgres/database";
import { CLIENT_INFO_SQL, type ClientInfo, clientInfoParameter } from "./identity/client-info.ts";
import { LIFETIMES } from "./identity/lifetimes.ts";
import type { OpenSignIn, SignInMethod } from "./login.ts";
import { decryptText, digestOf, encryptText, generateSecret } from "./random-secrets.ts";

/** The prefix of links that lead to a code for tokens. It allows errors to be reported in the form that the client expects. */
export const PKCE_PREFIX = "pkce_";

/** The client's challenge (RFC 7636); only the client knows the verifier. */
export type CodeChallenge = { readonly challenge: string; readonly method: "s256" | "plain" };

type NewFlow = {
  readonly codeChallenge: CodeChallenge;
  readonly method: SignInMethod;
  /** Null if the user is not known yet. */
  readonly userId: string | null;
};

type FlowExchange<T> =
  | { readonly kind: "opened"; readonly opened: T }
  | { readonly kind: "absent" | "expired" | "disabled" | "verifier" };

/** Sign-ins that end with a code, which only the client that began them can exchange for tokens (PKCE). */
export type FlowStates = {
  begin(client: pg.ClientBase, flow: NewFlow): Promise<string>;
  /**
   * Issues a code for a user who has signed in and whose account is locked. Null if the sign-in has expired. The exchange
   * completes with the `attachment`.
   */
  issueCode(client: pg.ClientBase, flowId: string, userId: string, attachment?: string | null): Promise<string | null>;
  /** A code can be exchanged once. */
  exchange<T>(
    submitted: { readonly code: string; readonly verifier: string },
    clientInfo: ClientInfo,
    open: OpenSignIn<T>,
    complete: CompleteFlow,
  ): Promise<FlowExchange<T>>;
};

/** Completes the work of a code's attachment, in the transaction that exchanges the code, before the sign-in opens. */
type CompleteFlow = (client: pg.ClientBase, attachment: string, clientInfo: ClientInfo) => Promise<void>;

type FlowRow = {
  readonly outcome: "passed" | "absent" | "expired" | "disabled" | "verifier";
  readonly user_id: string;
  readonly method: SignInMethod;
  readonly sealed: Buffer | null;
};

const BEGIN_FLOW = `select auth.add_flow_state($1, $2, $3, $4, ${LIFETIMES.mailCode}) as id`;
const ISSUE_CODE = `select auth.issue_flow_code($1, $2, $3, $4, ${LIFETIMES.flowCode}) as issued`;
const USE_CODE = `select * from auth.use_flow_code($2, $3, ${CLIENT_INFO_SQL})`;

export function makeFlowStates(asOwner: AsOwner): FlowStates {
  return {
    async begin(client, { codeChallenge: { challenge, method: transformation }, method, userId }) {
      const { rows } = await client.query<{ id: string }>(BEGIN_FLOW, [challenge, transformation, method, userId]);
      return rows[0]!.id;
    },

    async issueCode(client, flowId, userId, attachment = null) {
      const code = generateSecret();
      const sealed = attachment === null ? null : encryptText(attachment, code);
      const { rows } = await client.query<{ issued: boolean }>(ISSUE_CODE, [flowId, userId, digestOf(code), sealed]);
      return rows[0]!.issued ? code : null;
    },

    exchange({ code, verifier }, clientInfo, open, complete) {
      return inOwnerTransaction(asOwner, async (client) => {
        const values = [clientInfoParameter(clientInfo), digestOf(code), verifier];
        const { rows } = await client.query<FlowRow>(USE_CODE, values);
        const { outcome, user_id: userId, method, sealed } = rows[0]!;
        if (outcome !== "passed") return { kind: outcome };
        if (sealed) await complete(client, decryptText(sealed, code), clientInfo);
        const proof = { methods: [method], aal: 1 } as const;
        return { kind: "opened", opened: await open(client, userId, clientInfo, proof) };
      });
    },
  };
}
