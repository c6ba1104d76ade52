import { join } from "node:path";
import { generate } from "otplib";
import type { BrowserContext, Page } from "playwright-core";
import { beforeAll, expect, test } from "vitest";
import { describeInBrowser, launchBrowser } from "../browser.ts";
import { useFixture } from "../fixture.ts";
import { newFactor, newPerson, openGateways, PASSWORD } from "../rest-gateway/sign-in/gateways.ts";

const NEW = "Quartz-Bird-8";

describeInBrowser("the pages of signing in, in a browser without scripts", () => {
  let context: BrowserContext;
  let page: Page;
  const complaints: string[] = [];
  const gateways = useFixture(openGateways);
  const browser = useFixture(launchBrowser);
  beforeAll(async () => {
    context = await browser.newContext({ javaScriptEnabled: false });
    page = await context.newPage();
    page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  });

  const open = (path: string) => page.goto(`${gateways.one.url}${path}`);
  const heading = () => page.getByRole("heading", { level: 1 }).textContent();
  const signIn = async (email: string, password: string) => {
    await page.getByLabel("E-mail address or user name").fill(email);
    await page.getByLabel("Password").fill(password);
    await page.getByRole("button", { name: "Sign in", exact: true }).click();
  };
  const signOut = async () => {
    await open("/auth/sign-in");
    await page.getByRole("button", { name: "Sign out" }).click();
    expect(await heading()).toBe("Sign in");
  };
  const take = async (name: string) => {
    if (process.env.SCREENSHOTS) await page.screenshot({ path: join(process.env.SCREENSHOTS, `${name}.png`) });
  };

  test("an account is created, after errors were shown at their fields, and is signed in", async () => {
    await open("/auth/sign-in?redirect_to=%2Fhealth");
    await take("sign-in");
    await page.getByRole("link", { name: "Create an account" }).click();
    await page.getByLabel("Your name").fill("Ada");
    await page.getByLabel("E-mail address").fill("ada@example.org");
    await page.getByLabel("Password").fill("easy");
    await page.getByRole("button", { name: "Create the account" }).click();
    await take("sign-up-refused");
    const password = page.getByLabel("Password");
    expect(await password.getAttribute("aria-invalid")).toBe("true");
    const described = (await password.getAttribute("aria-describedby"))!.split(" ");
    expect(described).toEqual(["password-hint", "password-fault"]);
    expect(await page.locator("#password-fault").textContent()).toContain("8 characters");
    expect(await password.evaluate((element) => element === element.ownerDocument.activeElement)).toBe(true);
    expect(await page.title()).toBe("Error: Create an account");
    expect(await page.getByLabel("Your name").inputValue()).toBe("Ada");
    expect(await password.inputValue()).toBe("");

    await password.fill(PASSWORD);
    await page.getByRole("button", { name: "Create the account" }).click();
    expect(new URL(page.url()).pathname).toBe("/health");
    const [cookie] = await context.cookies();
    expect(cookie).toMatchObject({ name: "SESSION", httpOnly: true, secure: true, sameSite: "Strict", path: "/" });
    await open("/auth/sign-in");
    await take("signed-in");
    expect(await page.locator("main").textContent()).toContain("ada@example.org");
    await signOut();
    expect(await context.cookies()).toEqual([]);
  });

  test("a wrong password shows the error of the service, and the right one signs in", async () => {
    const { email } = await newPerson(gateways);
    await open("/auth/sign-in");
    await signIn(email, "Wrong-Boat-7");
    await take("sign-in-refused");
    expect(await page.getByRole("alert").textContent()).toBe("The user name or the password is wrong.");
    expect(await page.getByLabel("E-mail address or user name").inputValue()).toBe(email);
    await signIn(email, PASSWORD);
    expect(await heading()).toBe("Your account");
    await signOut();
  });

  test("an account with an authenticator app requires a code, and no page contains the password meanwhile", async () => {
    const { email, pair } = await newPerson(gateways);
    const { secret } = await newFactor(gateways, pair.accessToken);
    await open("/auth/sign-in?redirect_to=%2Fhealth");
    await signIn(email, PASSWORD);
    expect(await heading()).toBe("One more step");
    await take("code");
    expect(await page.content()).not.toContain(PASSWORD);
    const [pending, ...others] = await context.cookies();
    expect(pending).toMatchObject({ name: "SIGNING_IN", httpOnly: true, secure: true, path: "/auth/sign-in" });
    expect(others).toEqual([]);
    await page.getByLabel("Code").fill("000000");
    await page.getByRole("button", { name: "Go on" }).click();
    expect(await page.locator("main").textContent()).toContain("The code is wrong");
    const next = await generate({ secret, epoch: Math.floor(Date.now() / 1000) + 30 });
    await page.getByLabel("Code").fill(next);
    await page.getByRole("button", { name: "Go on" }).click();
    expect(new URL(page.url()).pathname).toBe("/health");
    expect((await context.cookies()).map(({ name }) => name)).toEqual(["SESSION"]);
    await signOut();
  });

  test("a forgotten password is replaced through an e-mail", async () => {
    const { email } = await newPerson(gateways);
    await open("/auth/sign-in");
    await page.getByRole("link", { name: "Forgotten your password?" }).click();
    await page.getByLabel("E-mail address").fill(email);
    await page.getByRole("button", { name: "Send me a link" }).click();
    expect(await heading()).toBe("Check your e-mail");
    const link = await gateways.linkIn({ to: email, about: "Set a new password" });
    await page.goto(link.href);
    // A program that checks mail has opened it before.
    await page.goto(link.href);
    await page.getByLabel("New password").fill(NEW);
    await take("new-password");
    await page.getByRole("button", { name: "Set the password" }).click();
    expect(await heading()).toBe("The password is set");
    await page.getByRole("link", { name: "Sign in" }).click();
    await signIn(email, NEW);
    expect(await heading()).toBe("Your account");
    await page.goto(link.href);
    await page.getByLabel("New password").fill(NEW);
    await page.getByRole("button", { name: "Set the password" }).click();
    expect(await page.getByRole("alert").textContent()).toContain("was used before, or has expired");
    await signOut();
  });

  test("an address is verified by a button, not by opening the link", async () => {
    const { email, userId } = await newPerson(gateways);
    const link = await gateways.linkIn({ to: email, about: "Confirm your e-mail address" });
    const verified = async () =>
      (await gateways.owner.query("select from auth.users where user_id = $1 and verified_email is not null", [userId]))
        .rowCount;
    await page.goto(link.href);
    await take("confirm");
    expect(await verified()).toBe(0);
    await page.getByRole("button", { name: "This is my address" }).click();
    expect(await heading()).toBe("The address is confirmed");
    expect(await verified()).toBe(1);
  });

  test("the account page changes the name, the authenticator app and the password, and signs out", async () => {
    const { email } = await newPerson(gateways);
    await open("/auth/sign-in");
    await signIn(email, PASSWORD);
    await page.getByLabel("Name").fill("Grace <Hopper>");
    await page.getByRole("button", { name: "Save the name" }).click();
    expect(await page.getByRole("status").textContent()).toBe("Your name is saved.");
    expect(await page.getByLabel("Name").inputValue()).toBe("Grace <Hopper>");

    await page.getByRole("link", { name: "set it up" }).click();
    await page.getByLabel("Your current password").fill(PASSWORD);
    await page.getByRole("button", { name: "Go on" }).click();
    const picture = page.getByRole("img", { name: "QR code of the key below" });
    expect(
      await picture.evaluate((image) => (image as unknown as { naturalWidth: number }).naturalWidth),
    ).toBeGreaterThan(100);
    const secret = (await page.locator("dd code").textContent())!.replaceAll(" ", "");
    await page.getByLabel("Code").fill(await generate({ secret }));
    await page.getByRole("button", { name: "Turn it on" }).click();
    expect(await page.locator(".codes li").count()).toBe(10);

    await page.getByRole("link", { name: "Your account" }).click();
    await page.getByRole("link", { name: "Change the password" }).click();
    await page.getByLabel("Your current password").fill(PASSWORD);
    await page.getByLabel("New password").fill(NEW);
    await page.getByRole("button", { name: "Change the password" }).click();
    expect(await page.getByRole("status").textContent()).toContain("Your password is changed.");
    await page.getByRole("button", { name: "Sign out" }).click();
    expect(await heading()).toBe("Sign in");
  });

  test("a redirect to another site is refused", async () => {
    const { email } = await newPerson(gateways);
    for (const target of ["https://evil.example.org/", "//evil.example.org", "/\\evil.example.org"]) {
      await open(`/auth/sign-in?redirect_to=${encodeURIComponent(target)}`);
      await signIn(email, PASSWORD);
      expect(await page.getByRole("alert").textContent()).toBe("Redirects to this URL are not allowed.");
      expect(await context.cookies()).toEqual([]);
    }
  });

  test.each([
    ["phone", { viewport: { width: 320, height: 640 }, colorScheme: "light" }],
    ["phone-dark", { viewport: { width: 390, height: 844 }, colorScheme: "dark" }],
    ["desktop-dark", { viewport: { width: 1280, height: 800 }, colorScheme: "dark" }],
  ] as const)("the page fits the screen: %s", async (name, options) => {
    const other = await browser.newPage({ ...options, javaScriptEnabled: false });
    await other.goto(`${gateways.one.url}/auth/sign-up`);
    if (process.env.SCREENSHOTS) await other.screenshot({ path: join(process.env.SCREENSHOTS, `${name}.png`) });
    const html = other.locator("html");
    expect(await html.evaluate((root) => root.scrollWidth)).toBe(await html.evaluate((root) => root.clientWidth));
    await other.close();
  });

  test("GraphiQL runs queries as the signed-in user without a token", async () => {
    const scripted = await browser.newContext();
    const explorer = await scripted.newPage();
    const { email } = await newPerson(gateways);
    await explorer.goto(`${gateways.one.url}/auth/sign-in?redirect_to=%2Fgraphiql`);
    await explorer.getByLabel("E-mail address or user name").fill(email);
    await explorer.getByLabel("Password").fill(PASSWORD);
    await explorer.getByRole("button", { name: "Sign in", exact: true }).click();
    await explorer.waitForSelector(".graphiql-execute-button");
    await explorer.click(".graphiql-execute-button");
    const result = explorer.locator(".result-window .CodeMirror-code");
    await result.getByText('"data"').waitFor();
    expect(await result.textContent()).not.toContain("PERMISSION_DENIED");
    await scripted.close();
  });

  test("the pages load nothing that their policy forbids", () => {
    // The browser logs an error for each refused response, too.
    expect(complaints.filter((text) => !text.startsWith("Failed to load resource"))).toEqual([]);
  });
});
