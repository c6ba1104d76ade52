import type { BrowserContext, Page } from "playwright-core";
import { beforeAll, test } from "vitest";
import { describeInBrowser, launchBrowser } from "../browser.ts";
import { useFixture } from "../fixture.ts";
import { expectAccessibleLayouts } from "../page-layouts.ts";
import { cookieOf, newFactor, newPerson, openGateways, PASSWORD } from "../rest-gateway/sign-in/gateways.ts";

const HOSTILE_NAME = `<img src=x onerror=alert(1)> "O'Neill" ${"long".repeat(30)}`;

type Visit = {
  readonly name: string;
  readonly path: string;
  readonly as?: "ada" | "eve";
  submit?(page: Page): Promise<void>;
};

const submitForm = (button: string, fields: Readonly<Record<string, string>>) => async (page: Page) => {
  for (const [label, value] of Object.entries(fields)) await page.getByLabel(label).fill(value);
  await page.getByRole("button", { name: button, exact: true }).click();
};

/** All pages of our own, and those that follow a form, accepted or not. */
const VISITS: readonly Visit[] = [
  { name: "start", path: "/" },
  { name: "errors", path: "/docs/errors" },
  { name: "error-404", path: "/nowhere" },
  { name: "error-401", path: "/api/auth/me" },
  { name: "error-400", path: "/users?page=x&limit=y" },
  { name: "error-table", path: "/rest/v1/userz?apikey=x" },
  { name: "error-405", path: "/auth/logout" },
  { name: "sign-in", path: "/auth/sign-in" },
  {
    name: "sign-in-refused",
    path: "/auth/sign-in",
    submit: submitForm("Sign in", { "E-mail address or user name": "ada@example.org", Password: "Wrong-Boat-7" }),
  },
  { name: "code", path: "/auth/sign-in/code" },
  { name: "sign-up", path: "/auth/sign-up" },
  {
    name: "sign-up-refused",
    path: "/auth/sign-up",
    submit: submitForm("Create the account", { "Your name": "A", "E-mail address": "a@b.example", Password: "easy" }),
  },
  { name: "forgotten-password", path: "/auth/forgotten-password" },
  { name: "new-password", path: "/auth/new-password?token=x" },
  {
    name: "new-password-refused",
    path: "/auth/new-password?token=x",
    submit: submitForm("Set the password", { "New password": "Quartz-Bird-8" }),
  },
  { name: "confirm-address", path: "/auth/confirm-address?token=x" },
  { name: "invitation-refused", path: "/auth/invitation?token=x" },
  { name: "change-address", path: "/auth/change-address?token=x" },
  { name: "provider-code", path: "/auth/providers/code" },
  { name: "provider-refused", path: "/auth/providers/acme/callback?state=x" },
  { name: "signed-in", path: "/auth/sign-in", as: "ada" },
  { name: "account", path: "/auth/account?done=name", as: "ada" },
  { name: "account-with-factor", path: "/auth/account", as: "eve" },
  { name: "account-refused", path: "/auth/account", as: "ada", submit: submitForm("Save the name", { Name: " " }) },
  { name: "password", path: "/auth/account/password", as: "ada" },
  {
    name: "password-refused",
    path: "/auth/account/password",
    as: "ada",
    submit: submitForm("Change the password", { "Your current password": "x", "New password": "easy" }),
  },
  { name: "address", path: "/auth/account/address", as: "ada" },
  { name: "authenticator", path: "/auth/account/authenticator", as: "ada" },
  {
    name: "enrolment",
    path: "/auth/account/authenticator",
    as: "ada",
    submit: submitForm("Go on", { "Your current password": PASSWORD }),
  },
  { name: "authenticator-on", path: "/auth/account/authenticator", as: "eve" },
  { name: "backup-codes", path: "/auth/account/backup-codes", as: "eve" },
  { name: "passkeys", path: "/auth/account/passkeys", as: "ada" },
  { name: "passkey-missing", path: "/auth/account/passkeys/edit", as: "ada" },
  { name: "passkey-sign-in", path: "/auth/sign-in/passkey" },
  { name: "passkey-request", path: "/auth/sign-in", submit: submitForm("Sign in with a passkey", {}) },
  { name: "keys", path: "/auth/account/keys", as: "ada" },
  {
    name: "new-key",
    path: "/auth/account/keys",
    as: "ada",
    submit: submitForm("Make a key", { "What it is for": HOSTILE_NAME, "Your current password": PASSWORD }),
  },
];

describeInBrowser("the pages of the service", () => {
  const cookies = new Map<string, string>();

  const gateways = useFixture(openGateways);
  const browser = useFixture(launchBrowser);
  beforeAll(async () => {
    await gateways.owner.query(
      "insert into auth.providers (name, kind, issuer, client_id, title) values ('acme', 'oidc', 'https://id.example.org', 'us', $1)",
      [`Acme & ${HOSTILE_NAME}`],
    );
    for (const name of ["ada", "eve"]) {
      const { email, pair, userId } = await newPerson(gateways);
      const code = name === "eve" ? (await newFactor(gateways, pair.accessToken)).backupCodes[0] : undefined;
      const login = await gateways.post(`${gateways.one.url}/api/auth/login`, {
        username: email,
        password: PASSWORD,
        code,
      });
      cookies.set(name, cookieOf(login)!.split("=")[1]!);
      await gateways.owner.query("update public.users set name = $2 where id = $1", [userId, HOSTILE_NAME]);
    }
  });

  test.each(VISITS)("$name is accessible on a phone and on a large screen, light and dark", async (visit) => {
    const context = await browser.newContext();
    const page = await opened(context, visit);
    await expectAccessibleLayouts(page, visit.name);
    await context.close();
  });

  async function opened(context: BrowserContext, { path, as, submit }: Visit): Promise<Page> {
    if (as)
      await context.addCookies([{ name: "SESSION", value: cookies.get(as)!, url: gateways.one.url, secure: true }]);
    const page = await context.newPage();
    await page.goto(gateways.one.url + path);
    await submit?.(page);
    return page;
  }
});
