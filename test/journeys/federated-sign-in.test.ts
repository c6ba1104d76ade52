import type { BrowserContext, Page } from "playwright-core";
import { afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { describeInBrowser, launchBrowser } from "../browser.ts";
import { useFixture } from "../fixture.ts";
import { openFederatedGateways } from "../rest-gateway/sign-in/federated-gateways.ts";
import { CLIENT, openOpenIdProvider } from "../rest-gateway/sign-in/openid-provider.ts";
import { PROVIDER_CERTIFICATE, SERVICE_CERTIFICATE, SERVICE_KEY } from "../rest-gateway/sign-in/saml-keys.ts";
import { ISSUER, openSamlProvider } from "../rest-gateway/sign-in/saml-provider.ts";

/** The service is at 127.0.0.1 and the providers at localhost: to a browser, two sites. */
describeInBrowser("signing in through another provider in a browser", () => {
  let context: BrowserContext;
  let page: Page;
  const url = (path: string) => `${gateways.one.url}${path}`;
  const gateways = useFixture(() => openFederatedGateways({ PUBLIC_URL: "" }));
  const openId = useFixture(() => openOpenIdProvider([gateways.one.url], "example", "localhost"));
  const saml = useFixture(() =>
    openSamlProvider({
      callback: url("/auth/providers/office/callback"),
      signedOut: url("/auth/providers/office/signed-out"),
    }),
  );
  beforeAll(async () => {
    await gateways.addProvider({
      name: "example",
      kind: "oidc",
      issuer: openId.issuer,
      title: "The Example",
      clientId: CLIENT.id,
      secret: CLIENT.secret,
    });
    const origin = saml.origin.replace("127.0.0.1", "localhost");
    const certificates = { certificates: [PROVIDER_CERTIFICATE], certificate: SERVICE_CERTIFICATE };
    const settings = { entry_point: `${origin}/sso`, logout_url: `${origin}/slo`, ...certificates };
    await gateways.addProvider({ name: "office", kind: "saml", issuer: ISSUER, secret: SERVICE_KEY, settings });
  });
  const browser = useFixture(launchBrowser);
  beforeEach(async () => {
    context = await browser.newContext();
    page = await context.newPage();
  });
  afterEach(() => context.close());

  /** Returns the user name on the last page of a sign-in, which the browser requests with the cookies that it has then. */
  const shownUser = async () => {
    await page.waitForURL(url("/api/auth/me"));
    return JSON.parse(await page.innerText("body")).username;
  };

  test("begins at a button of the sign-in page, and the next page shows the user", async () => {
    await page.goto(url("/auth/sign-in?redirect_to=/api/auth/me"));
    await page.getByRole("link", { name: "The Example" }).click();
    await page.fill("input[name=login]", "ada");
    await page.fill("input[name=password]", "any");
    await page.getByRole("button").first().click();
    await page.waitForURL(/interaction/);
    await page.getByRole("button", { name: "Continue" }).click();
    expect(await shownUser()).toBe("ada@example.org");
    const session = (await context.cookies()).find(({ name }) => name === "SESSION");
    expect(session).toMatchObject({ httpOnly: true, secure: true, sameSite: "Strict" });

    const { csrfToken } = await (await context.request.get(url("/csrf-token"))).json();
    const signOut = await context.request.post(url("/auth/providers/example/sign-out"), {
      data: { redirectTo: "/auth/providers" },
      headers: { "X-CSRF-Token": csrfToken },
    });
    await page.goto((await signOut.json()).address);
    await page.getByRole("button", { name: /yes/i }).click();
    await page.waitForURL(url("/auth/providers"));
    expect((await context.request.get(url("/api/auth/me"))).status()).toBe(401);
  });

  test("by SAML returns in a form of the provider's page, with its cookie", async () => {
    saml.user = { id: "bob@example.org", displayName: "Bob" };
    await page.goto(url("/auth/providers/office/sign-in?redirect_to=/api/auth/me"));
    expect(await shownUser()).toBe("bob@example.org");
  });

  test("shows on a page why it is refused", async () => {
    await page.goto(url("/auth/providers/example/callback?error=access_denied&state=unknown"));
    await expect.poll(() => page.getByRole("alert").innerText()).toContain("was started in another browser");
    expect(await page.getByRole("link").getAttribute("href")).toBe("/auth/sign-in");
  });
});
