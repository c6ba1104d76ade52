import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { useFixture } from "../../fixture.ts";
import type { Browser } from "./browser.ts";
import { at, openFederatedGateways, whoIs } from "./federated-gateways.ts";
import { json, openForger } from "./forger.ts";

const CLIENT = { id: "content-service", secret: "a secret of the client that nobody else knows" };
let browser: Browser;
let tokenRequest: Readonly<Record<string, string>> | null = null;
const gateways = useFixture(openFederatedGateways);
const provider = useFixture(() => openForger(CLIENT.id));
beforeAll(async () => {
  await gateways.addProvider({
    name: "forge",
    kind: "oauth2",
    issuer: provider.issuer,
    clientId: CLIENT.id,
    secret: CLIENT.secret,
    trustsEmail: true,
    settings: {
      authorization_endpoint: `${provider.issuer}/authorize`,
      token_endpoint: `${provider.issuer}/token`,
      userinfo_endpoint: `${provider.issuer}/user`,
      scope: "read:user",
      claims: { subject: "id", name: "login" },
    },
  });
});
beforeEach(() => {
  browser = gateways.browser();
  provider.forget();
  provider.say("/token", ({ form }) => {
    tokenRequest = Object.fromEntries(form);
    return json({ access_token: "an-access-token", refresh_token: "r", expires_in: 3600, token_type: "bearer" });
  });
  provider.say("/user", ({ request }) => {
    const isKnown = request.headers.authorization === "Bearer an-access-token";
    return isKnown ? json({ id: 42, login: "octo", email: "octo@example.org" }) : json({}, 401);
  });
});

async function signIn(query: Readonly<Record<string, string>> = { code: "a-code" }) {
  const { headers } = await browser.ask(at("/auth/providers/forge/sign-in"));
  const departure = new URL(headers.get("location")!);
  const state = departure.searchParams.get("state")!;
  const shown = await browser.ask(at(`/auth/providers/forge/callback?${new URLSearchParams({ state, ...query })}`));
  return { departure, shown };
}

describe("an invalid provider row", () => {
  const rows = {
    "an issuer that is no address": "'oidc', 'no-address', 'c', null, '{}'",
    "endpoints that are none": `'oauth2', 'endless', 'c', null,
      '{"authorization_endpoint": "x", "token_endpoint": "y", "userinfo_endpoint": "z"}'`,
    "an entry point that is none": `'saml', 'pointless', null, null, '{"entry_point": "x", "certificates": ["y"]}'`,
  };
  test.each(Object.entries(rows))("with %s is reported as an unavailable provider: 502", async (_what, row) => {
    await gateways.owner.query(
      `insert into auth.providers (name, kind, issuer, client_id, client_secret, settings) values ('broken', ${row})`,
    );
    try {
      expect(await browser.ask(at("/auth/providers/broken/sign-in"))).toMatchObject({
        status: 502,
        body: { error: { code: "PROVIDER_UNAVAILABLE" } },
      });
    } finally {
      await gateways.owner.query("delete from auth.providers where name = 'broken'");
    }
  });
});

describe("a SAML provider row without certificates", () => {
  beforeAll(() =>
    gateways.owner.query(
      `insert into auth.providers (name, kind, issuer, settings) values ('bare', 'saml', 'bare', '{"entry_point": "https://idp.example.org"}')`,
    ),
  );
  afterAll(() => gateways.owner.query("delete from auth.providers where name = 'bare'"));

  test.each(["sign-in", "metadata", "signed-out"])(
    "is reported at /%s as an unavailable provider: 502",
    async (place) => {
      expect(await browser.ask(at(`/auth/providers/bare/${place}`))).toMatchObject({
        status: 502,
        body: { error: { code: "PROVIDER_UNAVAILABLE" } },
      });
    },
  );
});

describe("a sign-in through an OAuth 2.0 provider", () => {
  test("exchanges the code by the standard and reads the configured claims", async () => {
    const { departure, shown } = await signIn();
    expect(Object.fromEntries(departure.searchParams)).toMatchObject({
      response_type: "code",
      client_id: CLIENT.id,
      scope: "read:user",
      redirect_uri: at("/auth/providers/forge/callback"),
    });
    expect(tokenRequest).toEqual({
      grant_type: "authorization_code",
      code: "a-code",
      client_id: CLIENT.id,
      client_secret: CLIENT.secret,
      redirect_uri: at("/auth/providers/forge/callback"),
      code_verifier: expect.stringMatching(/^[\w-]{43}$/),
    });
    expect(shown).toMatchObject({ status: 200, body: { username: "octo@example.org" } });
    const { rows } = await gateways.owner.query(
      "select subject, name from auth.identities join public.users on users.id = user_id",
    );
    expect(rows).toEqual([{ subject: "42", name: "octo" }]);
    const { userId } = await whoIs(browser);
    browser = gateways.browser({ gateway: "two" });
    await signIn();
    expect((await whoIs(browser)).userId).toBe(userId);
  });

  test("distinguishes users whose numeric subjects JavaScript would round to the same number", async () => {
    const ids = ["9007199254740992", "9007199254740993"];
    for (const id of ids) {
      provider.say("/user", () => ({ body: `{"id": ${id}, "login": "big", "email": "big-${id}@example.org"}` }));
      expect((await signIn()).shown).toMatchObject({ status: 200, body: { username: `big-${id}@example.org` } });
    }
    const { rows } = await gateways.owner.query("select subject from auth.identities where subject ~ '^9' order by 1");
    expect(rows.map(({ subject }) => subject)).toEqual(ids);
  });

  test.each([
    ["\\ud83d", "Cut \ufffd"],
    ["\\u0000", "Cut"],
  ])("accepts a name that ends with %s, which Postgres cannot store", async (end, name) => {
    const email = `cut-${end.slice(2)}@example.org`;
    provider.say("/user", () => ({ body: `{"id": "${email}", "login": "Cut ${end}", "email": "${email}"}` }));
    expect((await signIn()).shown.status).toBe(200);
    const { rows } = await gateways.owner.query("select name from users where email = $1", [email]);
    expect(rows).toEqual([{ name }]);
  });

  test("uses the e-mail address instead of an unreadable name", async () => {
    provider.say("/user", () => json({ id: 77, login: "\u3164", email: "unread@example.org" }));
    expect((await signIn()).shown.status).toBe(200);
    const { rows } = await gateways.owner.query("select name from users where email = 'unread@example.org'");
    expect(rows).toEqual([{ name: "unread" }]);
  });

  test.each(['"\\ud800"', '"4\\u0000"'])("is refused if the subject is not a string, such as %s: 401", async (id) => {
    provider.say("/user", () => ({ body: `{"id": ${id}, "login": "odd", "email": "odd-${id.length}@example.org"}` }));
    expect((await signIn()).shown).toMatchObject({ status: 401, body: { error: { code: "INVALID_ASSERTION" } } });
  });

  test("is refused without a subject (401), and without an e-mail address if there is no account (403)", async () => {
    provider.say("/user", () => json({ email: "octo@example.org" }));
    expect((await signIn()).shown).toMatchObject({ status: 401, body: { error: { code: "INVALID_ASSERTION" } } });
    provider.say("/user", () => json({ id: 43, login: "nameless" }));
    expect((await signIn()).shown).toMatchObject({ status: 403, body: { error: { code: "EMAIL_REQUIRED" } } });
    provider.say("/user", () => json({ id: 42 }));
    expect((await signIn()).shown.status).toBe(200);
  });

  test("is refused if the user or the provider declines: 401", async () => {
    expect((await signIn({ error: "access_denied" })).shown).toMatchObject({
      status: 401,
      body: { error: { code: "PROVIDER_REFUSED" } },
    });
    provider.say("/token", () => json({ error: "invalid_grant" }, 400));
    expect((await signIn()).shown).toMatchObject({ status: 401, body: { error: { code: "PROVIDER_REFUSED" } } });
  });

  test.each([
    ["/token", json({ access_token: "an-access-token" }), 401],
    ["/user", json({ message: "Bad credentials" }, 401), 502],
    ["/user", { body: "[" }, 502],
    ["/user", { body: '"octo"' }, 502],
  ])("when %s answers %j is %i", async (path, answer, status) => {
    provider.say(path, () => answer);
    expect((await signIn()).shown.status).toBe(status);
    expect(await whoIs(browser)).toBeNull();
  });

  test("refuses an invalid e-mail address, as at registration: 400", async () => {
    provider.say("/user", () => json({ id: 44, login: "odd", email: "not an address" }));
    expect((await signIn()).shown).toMatchObject({ status: 400, body: { error: { code: "VALIDATION_ERROR" } } });
  });
});
