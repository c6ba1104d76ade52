import type { BrowserContext, CDPSession, Page } from "playwright-core";
import { afterEach, beforeEach, expect, test } from "vitest";
import { describeInBrowser, launchBrowser } from "../../../browser.ts";
import { useFixture } from "../../../fixture.ts";
import { expectAccessible } from "../../../page-layouts.ts";
import { newFactor, newPerson, openGateways, PASSWORD, type Person } from "../gateways.ts";

describeInBrowser("passkeys on the pages", () => {
  let context: BrowserContext;
  let page: Page;
  let devices: CDPSession;
  let authenticatorId: string;

  const gateways = useFixture(openGateways);
  const browser = useFixture(launchBrowser);
  beforeEach(async () => {
    context = await browser.newContext();
    page = await context.newPage();
    devices = await context.newCDPSession(page);
    await devices.send("WebAuthn.enable");
    authenticatorId = await plugIn();
  });
  afterEach(() => context.close());

  /** Browsers allow no passkeys for IP addresses. */
  const at = (path: string) => gateways.one.url.replace("127.0.0.1", "localhost") + path;
  const click = (name: string) => page.getByRole("button", { name, exact: true }).click();

  async function plugIn(verifiesUser = true): Promise<string> {
    const options = {
      protocol: "ctap2",
      transport: "internal",
      hasResidentKey: true,
      automaticPresenceSimulation: true,
    };
    const verification = { hasUserVerification: verifiesUser, isUserVerified: verifiesUser };
    const added = await devices.send("WebAuthn.addVirtualAuthenticator", {
      options: { ...options, ...verification } as never,
    });
    return added.authenticatorId;
  }

  async function signIn({ email }: Person, code?: string): Promise<void> {
    await page.goto(at("/auth/sign-in"));
    await page.getByLabel("E-mail address or user name").fill(email);
    await page.getByLabel("Password").fill(PASSWORD);
    await click("Sign in");
    if (code === undefined) return;
    await page.getByLabel("Code").fill(code);
    await click("Go on");
  }

  async function addPasskey(name: string): Promise<void> {
    await page.goto(at("/auth/account/passkeys"));
    await page.getByLabel("Name").fill(name);
    await page.getByLabel("Your current password").fill(PASSWORD);
    await click("Add a passkey");
    await page.waitForURL(at("/auth/account/passkeys"));
    await page.getByText(name).waitFor();
  }

  async function signOut(): Promise<void> {
    await page.goto(at("/auth/account"));
    await click("Sign out");
    await page.getByRole("heading", { name: "Sign in", exact: true }).waitFor();
  }

  test("are added after the password, sign in without it, are renamed and removed", async () => {
    const person = await newPerson(gateways);
    await signIn(person);
    await addPasskey("Laptop");
    await expectAccessible(page);
    await signOut();

    await click("Sign in with a passkey");
    await page.getByRole("heading", { name: "Your account" }).waitFor();
    await page.getByText(person.email).waitFor();

    await page.goto(at("/auth/account/passkeys"));
    await page.getByText("last used").waitFor();
    await page.getByRole("link", { name: "Change Laptop" }).click();
    await expectAccessible(page);
    await page.getByLabel("Name").fill("Work <laptop>");
    await click("Save the name");
    await page.getByRole("link", { name: "Change Work <laptop>" }).click();
    await page.getByLabel("Your current password").fill("Wrong-Boat-7");
    await click("Remove the passkey");
    await page.getByText("The current password is wrong.").waitFor();
    await page.getByLabel("Your current password").fill(PASSWORD);
    await click("Remove the passkey");
    await page.getByText("You have no passkeys.").waitFor();

    await signOut();
    await click("Sign in with a passkey");
    await page.getByText("The passkey is unknown, or its signature is not valid.").waitFor();
    await expectAccessible(page);
  });

  test("stand for the password and the code of an account with an authenticator app", async () => {
    const person = await newPerson(gateways);
    const { backupCodes } = await newFactor(gateways, person.pair.accessToken);
    await signIn(person, backupCodes[0]);
    await addPasskey("Phone");
    await signOut();
    await signIn(person);
    await page.getByRole("heading", { name: "One more step" }).waitFor();
    await click("Sign in with a passkey");
    await expect.poll(() => page.getByRole("heading", { name: "Your account" }).isVisible()).toBe(true);
  });

  test("lead to the page that required the sign-in", async () => {
    const person = await newPerson(gateways);
    await signIn(person);
    await addPasskey("Laptop");
    await signOut();
    await page.goto(at("/auth/account/keys"));
    await click("Sign in with a passkey");
    await expect.poll(() => page.url()).toBe(at("/auth/account/keys"));
  });

  test("cannot be added twice by one device, nor without a password", async () => {
    const person = await newPerson(gateways);
    await signIn(person);
    await addPasskey("Laptop");
    await page.getByLabel("Name").fill("Again");
    await page.getByLabel("Your current password").fill("Wrong-Boat-7");
    await click("Add a passkey");
    await page.getByText("The current password is wrong.").waitFor();
    await page.getByLabel("Your current password").fill(PASSWORD);
    await click("Add a passkey");
    await page.getByText("This device has a passkey for your account already.").waitFor();
    await expectAccessible(page);
  });

  test("can be asked for again when the device does not answer", async () => {
    const person = await newPerson(gateways);
    await signIn(person);
    await addPasskey("Laptop");
    await signOut();
    await devices.send("WebAuthn.setUserVerified", { authenticatorId, isUserVerified: false });
    await click("Sign in with a passkey");
    await page.getByText("The passkey was not used. Try again, or cancel.").waitFor();
    await devices.send("WebAuthn.setUserVerified", { authenticatorId, isUserVerified: true });
    await click("Ask again");
    await expect.poll(() => page.getByRole("heading", { name: "Your account" }).isVisible()).toBe(true);
  });

  test("need JavaScript, which the page says; everything else works without", async () => {
    const plain = await browser.newContext({ javaScriptEnabled: false });
    const quiet = await plain.newPage();
    await quiet.goto(at("/auth/sign-in"));
    await quiet.getByRole("button", { name: "Sign in with a passkey" }).click();
    expect(await quiet.locator("noscript").textContent()).toContain("Passkeys require JavaScript.");
    await quiet.getByRole("link", { name: "Sign in another way" }).click();
    await quiet.getByLabel("Password").waitFor();
    await plain.close();
  });

  test("are requested and removed by pages of this site only", async () => {
    const headers = { Origin: "https://evil.example.org", "Content-Type": "application/x-www-form-urlencoded" };
    const { status } = await gateways.post(`${gateways.one.url}/auth/sign-in/passkey`, "", { headers });
    expect(status).toBe(403);
  });
});
