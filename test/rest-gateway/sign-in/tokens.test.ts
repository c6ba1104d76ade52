import { generateKeyPairSync, randomUUID } from "node:crypto";
import jwt from "jsonwebtoken";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { useFixture } from "../../fixture.ts";
import { newAddress } from "../../new-address.ts";
import { settingsOf } from "../../routers/through-router.ts";
import { SECRET } from "../../secret.ts";
import { type Gateways, newPerson, openGateways, PASSWORD } from "./gateways.ts";

const gateways = useFixture(openGateways);

const at = (path: string) => `${gateways.one.url}${path}`;
const atOther = (path: string) => `${gateways.two.url}${path}`;
const post: Gateways["post"] = (...sent) => gateways.post(...sent);
const refresh = (refreshToken: unknown, headers = {}, to = at) =>
  post(to("/auth/refresh"), { refreshToken }, { headers });

describe("a registration", () => {
  test("returns 201 with the user and a token pair that every gateway accepts", async () => {
    const email = `${randomUUID()}@example.org`;
    const { status, headers, body } = await post(at("/auth/register"), { name: "Ada", email, password: PASSWORD });
    expect(status).toBe(201);
    expect(headers.get("cache-control")).toBe("no-store");
    expect(body).toMatchObject({ user: { name: "Ada", email }, tokenType: "Bearer", expiresIn: 3600 });
    expect(jwt.verify(body.accessToken, SECRET)).toMatchObject({
      sub: String(body.user.id),
      name: "Ada",
      role: "authenticated",
      permissions: expect.any(Array),
      iss: "content-service",
    });
    expect((await post(atOther("/auth/logout"), undefined, { token: body.accessToken })).status).toBe(200);
  });

  test("with a taken e-mail address is 409", async () => {
    const { email } = await newPerson(gateways);
    const again = await post(at("/auth/register"), { name: "Eve", email: email.toUpperCase(), password: PASSWORD });
    expect(again).toMatchObject({ status: 409, body: { error: { code: "RESOURCE_CONFLICT" } } });
    expect(again.body.error.details).toEqual([{ field: "email", message: expect.any(String) }]);
  });

  test.each([
    ["what is missing", { email: "a@example.org" }, "MISSING_FIELD", ["name", "password"]],
    ["what is no text", { name: 7, email: "a@example.org", password: PASSWORD }, "VALIDATION_ERROR", ["name"]],
    [
      "an age in parts",
      { name: "A", email: "a@example.org", password: PASSWORD, age: 1.5 },
      "VALIDATION_ERROR",
      ["age"],
    ],
    [
      "an age that no column holds",
      { name: "A", email: "a@example.org", password: PASSWORD, age: 2 ** 31 },
      "VALIDATION_ERROR",
      ["age"],
    ],
    ["what is no address", { name: "A", email: "nowhere", password: PASSWORD }, "VALIDATION_ERROR", ["email"]],
    ["the character zero", { name: "A\0", email: "a@example.org", password: PASSWORD }, "VALIDATION_ERROR", ["name"]],
    ["half a character", { name: "A\ud800", email: "a@example.org", password: PASSWORD }, "VALIDATION_ERROR", ["name"]],
    [
      "a weak password",
      { name: "A", email: "a@example.org", password: "short" },
      "VALIDATION_ERROR",
      ["password", "password"],
    ],
  ])("with %s is 400 with its field", async (_what, account, code, fields) => {
    const { status, body } = await post(at("/auth/register"), account);
    expect(status).toBe(400);
    expect(body.error.code).toBe(code);
    expect(body.error.details.map(({ field }: { field: string }) => field)).toEqual(fields);
  });
});

describe("a request body", () => {
  test.each([
    ["that is no JSON", '{"username":', "application/json", 400, "INVALID_JSON"],
    ["that is no object", "[1]", "application/json", 400, "VALIDATION_ERROR"],
    ["of a form", "username=a&password=b", "application/x-www-form-urlencoded", 415, "UNSUPPORTED_MEDIA_TYPE"],
    ["that is text", '{"username":"a","password":"b"}', "text/plain", 415, "UNSUPPORTED_MEDIA_TYPE"],
    ["of many letters", JSON.stringify({ username: "a".repeat(70_000) }), "application/json", 413, "PAYLOAD_TOO_LARGE"],
    ["of nothing", "", "application/json", 400, "MISSING_FIELD"],
  ])("%s is refused", async (_what, text, type, status, code) => {
    const response = await post(at("/auth/login"), text, { headers: { "Content-Type": type } });
    expect(response).toMatchObject({ status, body: { error: { code, requestId: expect.any(String) } } });
    expect(response.headers.get("cache-control")).toBe("no-store");
  });
});

describe("a login", () => {
  test("returns a pair, with user name or e-mail address", async () => {
    const { email } = await newPerson(gateways);
    const { status, body } = await post(atOther("/auth/login"), { username: email, password: PASSWORD });
    expect(status).toBe(200);
    expect(body).toEqual({
      accessToken: expect.any(String),
      refreshToken: expect.any(String),
      expiresIn: 3600,
      tokenType: "Bearer",
    });
  });

  test("returns a token that fits into a header, even for a long name", async () => {
    const { email, userId } = await newPerson(gateways);
    // A row that is older than the bound may have such a name.
    await gateways.owner.query("alter table users drop constraint if exists users_name_max_length");
    await gateways.owner.query("update users set name = repeat('\u{1f642}', 20000) where id = $1", [userId]);
    const { body } = await post(at("/auth/login"), { username: email, password: PASSWORD });
    expect((jwt.decode(body.accessToken) as jwt.JwtPayload).name).toBe("\u{1f642}".repeat(200));
    expect((await post(at("/auth/logout"), undefined, { token: body.accessToken })).status).toBe(200);
  });

  test("returns the same error for a wrong password and an unknown user, with a challenge", async () => {
    const { email } = await newPerson(gateways);
    const [wrong, anonymous] = await Promise.all(
      [email, "nobody@example.org"].map((username) => post(at("/auth/login"), { username, password: "Wrong-Boat-7" })),
    );
    expect(wrong).toMatchObject({ status: 401, body: { error: { code: "INVALID_CREDENTIALS" } } });
    expect(wrong!.headers.get("www-authenticate")).toBe("Bearer");
    expect(anonymous!.status).toBe(401);
    expect(anonymous!.body.error.message).toBe(wrong!.body.error.message);
  });

  test("is 429 with Retry-After after five failures at any gateways", async () => {
    const { email } = await newPerson(gateways);
    const from = newAddress();
    const attempt = (to: typeof at, password: string, address = from) =>
      post(to("/auth/login"), { username: email, password }, { from: address });
    const statuses = [];
    for (const to of [at, atOther, at, atOther, at]) statuses.push((await attempt(to, "Wrong-Boat-7")).status);
    expect(statuses).toEqual([401, 401, 401, 401, 401]);

    const refused = await attempt(atOther, PASSWORD);
    expect(refused).toMatchObject({ status: 429, body: { error: { code: "RATE_LIMITED" } } });
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(Number(refused.headers.get("retry-after"))).toBeLessThanOrEqual(900);
    expect((await attempt(at, PASSWORD, newAddress())).status).toBe(200);
  });

  test("of a disabled account is 403", async () => {
    const { email, userId } = await newPerson(gateways);
    await gateways.owner.query("select auth.disable_account($1, null)", [userId]);
    const response = await post(at("/auth/login"), { username: email, password: PASSWORD });
    expect(response).toMatchObject({ status: 403, body: { error: { code: "ACCOUNT_DISABLED" } } });
  });
});

describe("a refresh", () => {
  test("returns the next pair, which any gateway accepts", async () => {
    const { pair } = await newPerson(gateways);
    const next = await refresh(pair.refreshToken);
    expect(next.status).toBe(200);
    expect(next.body.refreshToken).not.toBe(pair.refreshToken);
    expect((await refresh(next.body.refreshToken, {}, atOther)).status).toBe(200);
  });

  test("with a used token is 401 and revokes the whole family", async () => {
    const { pair } = await newPerson(gateways);
    const next = await refresh(pair.refreshToken);
    const reused = await refresh(pair.refreshToken, {}, atOther);
    expect(reused).toMatchObject({ status: 401, body: { error: { code: "INVALID_TOKEN" } } });
    expect(reused.headers.get("www-authenticate")).toContain('error="invalid_token"');
    expect((await refresh(next.body.refreshToken)).status).toBe(401);
  });

  test("with the same Idempotency-Key returns two tabs the same pair, at any gateway", async () => {
    const { pair } = await newPerson(gateways);
    const tab = { "Idempotency-Key": randomUUID() };
    const [one, two] = await Promise.all([refresh(pair.refreshToken, tab), refresh(pair.refreshToken, tab, atOther)]);
    expect([one.status, two.status]).toEqual([200, 200]);
    expect(two.body).toEqual(one.body);
    expect((await refresh(one.body.refreshToken)).status).toBe(200);
  });

  test("succeeds once of many concurrent ones", async () => {
    const { pair } = await newPerson(gateways);
    const response = await Promise.all([at, atOther, at, atOther].map((to) => refresh(pair.refreshToken, {}, to)));
    expect(response.map(({ status }) => status).sort()).toEqual([200, 401, 401, 401]);
  });

  test("without a token, or with an access token, is 400", async () => {
    const { pair } = await newPerson(gateways);
    expect(await refresh(undefined)).toMatchObject({ status: 400, body: { error: { code: "MISSING_FIELD" } } });
    expect(await refresh(pair.accessToken)).toMatchObject({
      status: 400,
      body: { error: { code: "VALIDATION_ERROR" } },
    });
  });

  test.each([
    ["what is no token", () => "nonsense", "INVALID_TOKEN"],
    ["one that somebody else signed", () => jwt.sign({ sub: "1", type: "refresh" }, "x".repeat(40)), "INVALID_TOKEN"],
    ["one that was never issued", () => jwt.sign({ sub: "1", type: "refresh" }, SECRET), "INVALID_TOKEN"],
    ["one that has expired", () => jwt.sign({ sub: "1", type: "refresh", exp: 1 }, SECRET), "TOKEN_EXPIRED"],
    ["one without a signature", () => jwt.sign({ type: "refresh" }, "", { algorithm: "none" }), "INVALID_TOKEN"],
  ])("with %s is 401", async (_what, token, code) => {
    expect(await refresh(token())).toMatchObject({ status: 401, body: { error: { code } } });
  });
});

describe("a logout", () => {
  test("revokes all refresh tokens of that user only", async () => {
    const [ada, eve] = [await newPerson(gateways), await newPerson(gateways)];
    const { body: elsewhere } = await post(atOther("/auth/login"), { username: ada.email, password: PASSWORD });
    const response = await post(at("/auth/logout"), undefined, { token: ada.pair.accessToken });
    expect(response).toMatchObject({ status: 200, body: { message: expect.any(String) } });
    expect((await refresh(ada.pair.refreshToken, {}, atOther)).status).toBe(401);
    expect((await refresh(elsewhere.refreshToken)).status).toBe(401);
    expect((await refresh(eve.pair.refreshToken)).status).toBe(200);
  });

  test("without a token is 401 AUTH_REQUIRED, with an invalid one 401 with its cause", async () => {
    const none = await post(at("/auth/logout"));
    expect(none).toMatchObject({ status: 401, body: { error: { code: "AUTH_REQUIRED" } } });
    expect(none.headers.get("www-authenticate")).toBe("Bearer");
    const { pair } = await newPerson(gateways);
    const codeFor = async (token: string) => (await post(at("/auth/logout"), undefined, { token })).body.error.code;
    expect(await codeFor(`${pair.accessToken}x`)).toBe("INVALID_TOKEN");
    expect(await codeFor(jwt.sign({ sub: "1", role: "authenticated", exp: 1 }, SECRET))).toBe("TOKEN_EXPIRED");
    expect(await codeFor(jwt.sign({ sub: "1", role: 7 }, SECRET))).toBe("VERIFICATION_FAILED");
    expect(await codeFor(pair.refreshToken)).toBe("INVALID_TOKEN");
  });

  test("is refused with an API key, even one of the user", async () => {
    const { userId, pair } = await newPerson(gateways);
    const key = `key_${randomUUID()}`;
    await gateways.owner.query(
      "insert into auth.api_keys (key_hash, prefix, role, owner_id) values (sha256($1::text::bytea), 'key_', 'authenticated', $2)",
      [key, userId],
    );
    for (const [path, headers] of [
      ["", { "X-API-Key": key }],
      [`?api_key=${key}`, {}],
    ] as const) {
      const response = await post(at(`/auth/logout${path}`), undefined, { headers });
      expect(response).toMatchObject({ status: 403, body: { error: { code: "PERMISSION_DENIED" } } });
    }
    expect((await post(at("/auth/logout?api_key=unknown"))).status).toBe(401);
    expect((await refresh(pair.refreshToken)).status).toBe(200);
  });
});

describe("a password change", () => {
  test("requires the old password and revokes all earlier sessions and tokens", async () => {
    const { email, pair } = await newPerson(gateways);
    const token = pair.accessToken;
    const newPassword = "Marmalade-Kite-9";
    const wrong = await post(at("/auth/password"), { currentPassword: "Wrong-Boat-7", newPassword }, { token });
    expect(wrong).toMatchObject({ status: 400, body: { error: { code: "INVALID_CREDENTIALS" } } });
    const changed = await post(at("/auth/password"), { currentPassword: PASSWORD, newPassword }, { token });
    expect(changed).toMatchObject({ status: 200, body: { tokenType: "Bearer" } });
    expect((await refresh(pair.refreshToken, {}, atOther)).status).toBe(401);
    expect((await refresh(changed.body.refreshToken, {}, atOther)).status).toBe(200);
    expect((await post(at("/auth/login"), { username: email, password: PASSWORD })).status).toBe(401);
    expect((await post(at("/auth/login"), { username: email, password: newPassword })).status).toBe(200);
  });

  test("is refused for callers without an account", async () => {
    const change = { currentPassword: PASSWORD, newPassword: "Marmalade-Kite-9" };
    expect((await post(at("/auth/password"), change)).status).toBe(401);
    const token = jwt.sign({ role: "service_role" }, SECRET);
    expect((await post(at("/auth/password"), change, { token })).status).toBe(403);
  });
});

describe("the key set", () => {
  test("is empty for HS256", async () => {
    const { status, body } = await gateways.get(at("/.well-known/jwks.json"));
    expect([status, body]).toEqual([200, { keys: [] }]);
  });

  test("verifies RS256 tokens and contains no private key", async () => {
    const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
    const pem = privateKey.export({ type: "pkcs8", format: "pem" }) as string;
    const signing = await openGateways({ settings: { JWT_SECRET: undefined, JWT_PRIVATE_KEY: pem } });
    try {
      const { pair } = await newPerson(signing);
      const { keys } = (await signing.get(`${signing.two.url}/.well-known/jwks.json`)).body;
      expect(keys).toEqual([
        {
          kty: "RSA",
          n: expect.any(String),
          e: expect.any(String),
          alg: "RS256",
          use: "sig",
          kid: expect.stringMatching(/^[\w-]{43}$/),
        },
      ]);
      const { createPublicKey } = await import("node:crypto");
      const key = createPublicKey({ key: keys[0], format: "jwk" });
      expect(jwt.verify(pair.accessToken, key, { algorithms: ["RS256"] })).toMatchObject({ role: "authenticated" });
      const confused = jwt.sign({ sub: "1", role: "admin" }, key.export({ type: "spki", format: "pem" }) as string, {
        algorithm: "HS256",
      });
      const response = await signing.post(`${signing.one.url}/auth/logout`, undefined, { token: confused });
      expect(response).toMatchObject({ status: 401, body: { error: { code: "INVALID_TOKEN" } } });
    } finally {
      await signing.close();
    }
  });
});

describe("a gateway with a rotated secret", () => {
  test("accepts tokens of the previous secret and signs with the new one", async () => {
    const { pair } = await newPerson(gateways);
    const settings = {
      ...settingsOf(gateways.database),
      JWT_SECRET: "a secret that took the place of another",
      JWT_PREVIOUS_SECRETS: SECRET,
    };
    const changed = await openGateways({ settings });
    try {
      const next = await post(`${changed.one.url}/auth/refresh`, { refreshToken: pair.refreshToken });
      expect(next.status).toBe(200);
      expect(jwt.verify(next.body.accessToken, settings.JWT_SECRET)).toMatchObject({ role: "authenticated" });
      for (const token of [pair.accessToken, next.body.accessToken]) {
        expect((await post(`${changed.one.url}/auth/logout`, undefined, { token })).status).toBe(200);
      }
      // The token is a stranger's for a service with another key.
      expect((await post(at("/auth/logout"), undefined, { token: next.body.accessToken })).status).toBe(401);
    } finally {
      await changed.close();
    }
  });
});

test("other methods are 405 with Allow", async () => {
  const response = await gateways.get(at("/auth/login"));
  expect(response.status).toBe(405);
  expect(response.headers.get("allow")).toBe("OPTIONS, POST");
});

describe("a gateway whose clock is an hour behind the database's", () => {
  beforeAll(() => {
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() - 3_600_000 });
  });
  afterAll(() => {
    vi.useRealTimers();
  });

  test("accepts tokens with the database's time", async () => {
    const { pair } = await newPerson(gateways);
    const { accessToken } = pair;
    expect((jwt.decode(accessToken) as jwt.JwtPayload).iat).toBeGreaterThan(Date.now() / 1000 + 3_000);
    for (const url of [at("/auth/logout"), atOther("/auth/logout")])
      expect((await post(url, undefined, { token: accessToken })).status).toBe(200);
  });

  test("refuses a token from the future and says whose clock is ahead", async () => {
    const iat = Math.floor(Date.now() / 1000) + 7_200;
    const later = jwt.sign({ role: "authenticated", sub: "1", iat }, SECRET);
    const { status, body } = await post(at("/auth/logout"), undefined, { token: later });
    expect([status, body.error.code]).toEqual([401, "VERIFICATION_FAILED"]);
    expect(body.error.message).toMatch(
      /^The token was issued 7\d+ seconds from now by the clocks of this gateway and of the database/,
    );
  });
});
