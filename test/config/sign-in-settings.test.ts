import { expect, test } from "vitest";
import { readConfig } from "../../config/config.ts";
import { listSignInSettings } from "../../config/sign-in-settings.ts";

const SECRET = "a-secret-that-is-long-enough-for-hs256";
const ENVIRONMENT = { JWT_SECRET: SECRET, SMTP_URL: "smtp://user:hunter2@host:587", MAIL_FROM: "us@example.org" };

test("the settings of sign-in are listed as they are in effect, and secrets only as set", () => {
  const { config } = readConfig({
    ...ENVIRONMENT,
    AUTH_SIGN_UPS: "false",
    SIGN_IN_REDIRECTS: "https://a.example/x,https://b.example/*",
  });
  const listed = listSignInSettings(config);
  const find = (name: string) => listed.find((setting) => setting.name === name);
  expect(find("AUTH_SIGN_UPS")).toMatchObject({ value: "false", is_default: false, is_set: true });
  expect(find("PASSWORD_POLICY")).toMatchObject({ value: "standard", is_default: true });
  expect(find("SIGN_IN_REDIRECTS")).toMatchObject({ value: "https://a.example/x, https://b.example/*" });
  expect(find("SITE_URL")).toMatchObject({ value: null, is_set: false });
  expect(find("SMTP_URL")).toMatchObject({ value: null, is_set: true, is_secret: true });
  expect(find("SIGN_UP_LIMIT")!.description).toMatch(/per hour/);
  expect(JSON.stringify(listed)).not.toMatch(/hunter2|a-secret/);
});
