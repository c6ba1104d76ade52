import type { GatewayRoutes } from "../../http/router.ts";
import { ACCOUNT_PATH } from "../sign-in-pages.ts";
import { keysPage, linkSubmission, revokeKeySubmission, signInsSubmission, unlinkSubmission } from "./access-pages.ts";
import { accountPage, verificationSubmission } from "./account-page.ts";
import { authenticatorPage, backupCodesPage } from "./authenticator-pages.ts";
import { passkeyPage, passkeysPage } from "./passkey-pages.ts";
import { addressPage, passwordPage } from "./password-pages.ts";
import { type AccountPageDependencies, type SignedInPage, signedInHandlers } from "./signed-in-page.ts";

/** The account page, and the pages and forms that it leads to. */
export function signedInPages(services: AccountPageDependencies): GatewayRoutes {
  const account = accountPage(services);
  const keys = keysPage(services);
  const page = (each: SignedInPage) => signedInHandlers(each, services);
  /** The form of a button; a rejected one is shown on the page with the button. */
  const button = (submit: SignedInPage["submit"], { show } = account) => ({ POST: page({ show, submit }).POST });
  return {
    [ACCOUNT_PATH]: page(account),
    [`${ACCOUNT_PATH}/verification`]: button(verificationSubmission(services)),
    [`${ACCOUNT_PATH}/password`]: page(passwordPage(services)),
    [`${ACCOUNT_PATH}/address`]: page(addressPage(services)),
    [`${ACCOUNT_PATH}/authenticator`]: page(authenticatorPage(services)),
    [`${ACCOUNT_PATH}/passkeys`]: page(passkeysPage(services)),
    [`${ACCOUNT_PATH}/passkeys/edit`]: page(passkeyPage(services)),
    [`${ACCOUNT_PATH}/backup-codes`]: page(backupCodesPage(services)),
    [`${ACCOUNT_PATH}/sign-ins`]: button(signInsSubmission(services)),
    [`${ACCOUNT_PATH}/keys`]: page(keys),
    [`${ACCOUNT_PATH}/keys/revoke`]: button(revokeKeySubmission(services), keys),
    [`${ACCOUNT_PATH}/providers/link`]: button(linkSubmission(services)),
    [`${ACCOUNT_PATH}/providers/unlink`]: button(unlinkSubmission(services)),
  };
}
