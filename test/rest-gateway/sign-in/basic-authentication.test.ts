import { expect, test } from "vitest";
import { useFixture } from "../../fixture.ts";
import { newAddress } from "../../new-address.ts";
import { newFactor, newPerson, openGateways, PASSWORD, type Sent } from "./gateways.ts";

const gateways = useFixture(openGateways);

const basic = (username: string, password = PASSWORD) =>
  `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`;
const HTTPS = { "X-Forwarded-Proto": "https" };
const enable = (Authorization: string, headers = {}, sent: Sent = {}) =>
  gateways.post(`${gateways.one.url}/api/mfa/enable`, undefined, { ...sent, headers: { Authorization, ...headers } });

test("Basic credentials authenticate over HTTPS, also of a trusted proxy, and from the same machine", async () => {
  const { email } = await newPerson(gateways);
  expect((await enable(basic(email), HTTPS)).status).toBe(200);
  expect((await enable(basic(email), {}, { from: "127.0.0.1" })).status).toBe(200);
});

test("Basic credentials over plain HTTP are refused without being checked", async () => {
  const { email } = await newPerson(gateways);
  const result = await enable(basic(email));
  expect(result).toMatchObject({ status: 403, body: { error: { code: "PERMISSION_DENIED" } } });
});

test.each([
  ["a wrong password", (email: string) => basic(email, "Wrong-Boat-7"), "INVALID_CREDENTIALS"],
  ["nobody's name", () => basic("nobody@example.org"), "INVALID_CREDENTIALS"],
  ["no name", () => basic(""), "INVALID_CREDENTIALS"],
  ["no colon", () => `Basic ${btoa("nothing")}`, "INVALID_CREDENTIALS"],
  ["nothing", () => "Basic", "INVALID_CREDENTIALS"],
])("%s is 401 with the challenge", async (_what, authorization, code) => {
  const { email } = await newPerson(gateways);
  const result = await enable(authorization(email), HTTPS);
  expect(result).toMatchObject({ status: 401, body: { error: { code } } });
  expect(result.headers.get("www-authenticate")).toBe('Basic realm="content-service", charset="UTF-8"');
});

test("Basic credentials are throttled like logins", async () => {
  const { email } = await newPerson(gateways);
  const from = newAddress();
  for (let guess = 0; guess < 5; guess++) {
    expect((await enable(basic(email, "Wrong-Boat-7"), HTTPS, { from })).status).toBe(401);
  }
  expect((await enable(basic(email), HTTPS, { from })).status).toBe(429);
});

test("an account with an authenticator app cannot use Basic credentials", async () => {
  const { email, pair } = await newPerson(gateways);
  await newFactor(gateways, pair.accessToken);
  expect(await enable(basic(email), HTTPS)).toMatchObject({ status: 401, body: { error: { code: "MFA_REQUIRED" } } });
});

test("Basic credentials that a browser sends for a page of another site are refused", async () => {
  const { email } = await newPerson(gateways);
  const result = await enable(basic(email), { ...HTTPS, "Sec-Fetch-Site": "cross-site" });
  expect(result).toMatchObject({ status: 403, body: { error: { code: "PERMISSION_DENIED" } } });
});
