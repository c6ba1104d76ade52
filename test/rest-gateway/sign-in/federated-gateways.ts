import { makeProviders, type NewProvider } from "../../../accounts/federation/providers.ts";
import { makeTokenKeys } from "../../../accounts/identity/token-keys.ts";
import { lender } from "../../accounts/open-accounts.ts";
import type { DatabaseTemplate } from "../../database.ts";
import { SECRET } from "../../secret.ts";
import { type Browser, openBrowser, type PageView } from "./browser.ts";
import { type Gateways, openGateways } from "./gateways.ts";

/** The address of the service that clients know. */
export const SITE = "https://service.example.org";
/** The address of a program that may be sent codes. */
export const PROGRAM = "https://app.example.org/signed-in";

export type FederatedGateways = Gateways & {
  /** The service's address leads to the first gateway, or to the second. */
  browser(options?: { readonly gateway?: "one" | "two"; readonly accept?: string }): Browser;
  addProvider(provider: Partial<NewProvider> & Pick<NewProvider, "name" | "kind" | "issuer">): Promise<void>;
  /** Returns the reason of the last refusal in the audit log. */
  lastRefusal(): Promise<{ readonly reason: string; readonly because?: string }>;
};

export async function openFederatedGateways(
  settings: NodeJS.ProcessEnv = {},
  template: DatabaseTemplate = "content",
): Promise<FederatedGateways> {
  const gateways = await openGateways({
    template,
    settings: { PUBLIC_URL: SITE, SIGN_IN_REDIRECTS: PROGRAM, ...settings },
  });
  const keys = makeTokenKeys({ jwtSecret: SECRET, jwtSecretIsBase64: false, jwtPrivateKey: null });
  const providers = makeProviders(lender(gateways.owner), async () => keys);
  return {
    ...gateways,
    browser: ({ gateway = "one", accept } = {}) =>
      openBrowser({ hosts: { [SITE]: gateways[gateway].url }, ...(accept !== undefined && { accept }) }),
    addProvider: (provider) =>
      providers.add({
        title: null,
        clientId: null,
        secret: null,
        signUps: true,
        trustsEmail: false,
        trustsFactor: false,
        settings: {},
        ...provider,
      }),
    async lastRefusal() {
      const { rows } = await gateways.owner.query(
        "select details from auth.audit_log where event = 'federation.refused' order by id desc limit 1",
      );
      return rows[0]?.details;
    },
  };
}

export const at = (path: string) => `${SITE}${path}`;

/** Returns the user whom the browser is signed in as; null for nobody. */
export async function whoIs(browser: Browser): Promise<PageView["body"]> {
  const shown = await browser.ask(at("/api/auth/me"));
  return shown.status === 200 ? shown.body : null;
}
