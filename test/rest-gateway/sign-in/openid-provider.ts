import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import Provider, { type Configuration } from "oidc-provider";
import type { Browser, PageView } from "./browser.ts";

export type OpenIdProvider = {
  readonly issuer: string;
  /** Signs in and agrees, in the provider's own forms. */
  signIn(browser: Browser, start: string | URL, login: string): Promise<PageView>;
  close(): Promise<void>;
};

export const CLIENT = { id: "content-service", secret: "a secret of the client that nobody else knows" };

/** Opens a real one on loopback. A user who signs in as `ada` is ada@example.org, verified; `unverified-…` is not. */
export async function openOpenIdProvider(
  sites: readonly string[],
  name = "example",
  host = "127.0.0.1",
): Promise<OpenIdProvider> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const issuer = `http://${host}:${(server.address() as AddressInfo).port}`;
  const configuration: Configuration = {
    clients: [
      {
        client_id: CLIENT.id,
        client_secret: CLIENT.secret,
        token_endpoint_auth_method: "client_secret_post",
        redirect_uris: sites.flatMap((site) => [`${site}/auth/providers/${name}/callback`, `${site}/auth/v1/callback`]),
        post_logout_redirect_uris: sites.map((site) => `${site}/auth/providers/${name}/signed-out`),
      },
    ],
    claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name"] },
    findAccount: (_context, sub) => ({
      accountId: sub,
      claims: () => ({
        sub,
        email: `${sub}@example.org`,
        email_verified: !sub.startsWith("unverified"),
        name: `The ${sub}`,
      }),
    }),
    cookies: { keys: ["a key of the test"] },
    features: { rpInitiatedLogout: { enabled: true } },
  };
  const provider = new Provider(issuer, configuration);
  server.on("request", provider.callback());
  return {
    issuer,
    async signIn(browser, start, login) {
      const request = await browser.go(start);
      const agreed = await browser.go(actionOf(request), { form: { prompt: "login", login, password: "any" } });
      return browser.go(actionOf(agreed), { form: { prompt: "consent" } });
    },
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

function actionOf({ text, url }: PageView): URL {
  return new URL(/action="([^"]+)"/.exec(text)![1]!, url);
}
