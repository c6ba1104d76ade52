import { clientInfoOf, HttpError } from "#http";
import type { RequestSession } from "#rest-gateway/authenticate";
import { type Html, html } from "#rest-gateway/pages";
import { showHiddenCharacters } from "#runtime";
import type { ListedGrant, OAuthStore } from "../oauth/oauth-store.ts";
import { isolatedName, timeOf } from "../pages/form-page.ts";
import { ACCOUNT_PATH } from "../pages/sign-in-pages.ts";
import { requireFields } from "../request/read-body.ts";
import { renderButton, returnToAccount, type SignedInPage } from "./signed-in-page.ts";

export const WITHDRAW_PATH = `${ACCOUNT_PATH}/applications/withdraw`;

/** Lists the applications that act for the user; null if there are none. */
export function applicationList(session: RequestSession, grants: readonly ListedGrant[]): Html | null {
  if (grants.length === 0) return null;
  return html`<h3>Applications that act for you</h3><ul class="rows">${grants.map((grant) => grantRow(session, grant))}</ul>`;
}

function grantRow(session: RequestSession, { clientId, clientName, scopes, ...times }: ListedGrant): Html {
  const withdraw = {
    action: WITHDRAW_PATH,
    hidden: { client: clientId },
    button: "Withdraw",
    label: `Withdraw the access of ${showHiddenCharacters(clientName)}`,
  };
  const { grantedAt, expiresAt, lastUsedAt } = times;
  return html`<li><div class="row"><strong>${isolatedName(clientName)}</strong> <code>${scopes.join(" ")}</code>
<span class="detail">since ${timeOf(grantedAt)}, until ${timeOf(expiresAt)}, ${lastUsedAt === null ? "never used" : html`last used ${timeOf(lastUsedAt)}`}</span></div>
${renderButton(session, withdraw)}</li>`;
}

export function withdrawSubmission(store: Pick<OAuthStore, "withdraw">): SignedInPage["submit"] {
  return async ({ session: { userId }, values, request }) => {
    const { client } = requireFields(values, ["client"]);
    if (!(await store.withdraw(userId, client, clientInfoOf(request)))) {
      throw new HttpError(404, "RESOURCE_NOT_FOUND", "This application has no access.");
    }
    return returnToAccount("application");
  };
}
