import { createHmac, generateKeyPairSync } from "node:crypto";
import jwt from "jsonwebtoken";
import { describe, expect, test, vi } from "vitest";
import { type Authenticator, makeAuthenticator } from "../../../accounts/identity/authenticator.ts";
import { CredentialError } from "../../../accounts/identity/credential-error.ts";
import { type IssuingKeys, makeTokenKeys } from "../../../accounts/identity/token-keys.ts";
import { signToken } from "../../../accounts/identity/tokens.ts";
import { errorHeaders, toHttpError } from "../../../http/http-error.ts";
import type { ApiError } from "../../../runtime/errors.ts";
import { SECRET } from "../../secret.ts";

const keys = makeTokenKeys({ jwtSecret: SECRET, jwtSecretIsBase64: false, jwtPrivateKey: null });
const pem = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey.export({
  type: "pkcs8",
  format: "pem",
}) as string;
const rsaKeys = makeTokenKeys({ jwtSecret: null, jwtSecretIsBase64: false, jwtPrivateKey: pem });
const now = () => Math.floor(Date.now() / 1000);

type Options = Parameters<typeof makeAuthenticator>[0];

function authenticatorWith(options: Partial<Options> = {}): Authenticator {
  return makeAuthenticator({
    anonRole: "anon",
    jwtAudience: null,
    jwtRoleClaim: ["role"],
    jwtCacheEntries: 100,
    keys,
    ...options,
  });
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

function parseErrorOf(authenticator: Authenticator, token: string) {
  try {
    authenticator.authenticate(bearer(token));
  } catch (error) {
    return error;
  }
  throw new Error("the token was accepted");
}

describe.each<[string, IssuingKeys]>([
  ["HS256", keys],
  ["RS256", rsaKeys],
])("a bearer token signed by %s", (_algorithm, ownKeys) => {
  const authenticator = authenticatorWith({ keys: ownKeys });

  test("has the role and the claims as written in the token", async () => {
    const caller = await authenticator.authenticate(
      bearer(signToken({ sub: "7", role: "authenticated" }, ownKeys, { timestamp: false })),
    );
    expect(caller).toMatchObject({ kind: "known", role: "authenticated", claims: { sub: "7" }, expiresAt: null });
    expect(caller.claimsText).toBe('{"sub":"7","role":"authenticated"}');
  });

  test("is refused once it has expired", () => {
    const token = signToken({ role: "authenticated", exp: now() - 31 }, ownKeys);
    expect(parseErrorOf(authenticator, token)).toMatchObject({ kind: "unauthenticated", code: "TOKEN_EXPIRED" });
  });

  test("is refused if a character of its signature differs", () => {
    const [head, body, signature] = signToken({ role: "authenticated" }, ownKeys).split(".");
    const first = signature!.startsWith("A") ? "B" : "A";
    expect(parseErrorOf(authenticator, `${head}.${body}.${first}${signature!.slice(1)}`)).toMatchObject({
      kind: "unauthenticated",
      code: "INVALID_TOKEN",
    });
  });
});

describe("the algorithm is a setting of the deployment, not of the token", () => {
  const unsigned = `${Buffer.from('{"alg":"none"}').toString("base64url")}.${Buffer.from('{"role":"admin"}').toString("base64url")}.`;
  // The classical confusion: the public key, which everybody has, used as an HMAC secret.
  const head = Buffer.from('{"alg":"HS256","typ":"JWT"}').toString("base64url");
  const body = Buffer.from('{"role":"admin"}').toString("base64url");
  const publicPem = rsaKeys.verifying[0]!.key.export({ type: "spki", format: "pem" }) as string;
  const confused = `${head}.${body}.${createHmac("sha256", publicPem).update(`${head}.${body}`).digest("base64url")}`;

  test.each([
    ["none", authenticatorWith(), unsigned],
    ["HS512", authenticatorWith(), jwt.sign({ role: "admin" }, SECRET, { algorithm: "HS512" })],
    ["RS256 where HS256 is set", authenticatorWith(), signToken({ role: "admin" }, rsaKeys)],
    ["HS256 where RS256 is set", authenticatorWith({ keys: rsaKeys }), signToken({ role: "admin" }, keys)],
    ["the public key as a secret", authenticatorWith({ keys: rsaKeys }), confused],
  ])("%s is refused", (_what, authenticator, token) => {
    expect(parseErrorOf(authenticator, token)).toMatchObject({ kind: "unauthenticated", code: "INVALID_TOKEN" });
  });
});

describe("authenticate", () => {
  const authenticator = authenticatorWith();

  test.each([[null], [""], ["  "]])("without a token (%j) the caller is anonymous", async (authorization) => {
    expect(await authenticator.authenticate({ authorization })).toBe(authenticator.anonymous);
    expect(authenticator.anonymous).toMatchObject({ kind: "anonymous", role: "anon", claimsText: '{"role":"anon"}' });
  });

  test.each([["Bearer"], ["bearer "], ["Bearer \t"]])(
    "an empty token (%j) is an error of the client",
    (authorization) => {
      expect(() => authenticator.authenticate({ authorization })).toThrow(
        expect.objectContaining({
          kind: "unauthenticated",
          code: "INVALID_TOKEN",
          message: "Empty JWT is sent in Authorization header",
        }),
      );
    },
  );

  test("everything after the scheme is the token, even if it has spaces", () => {
    const token = signToken({ role: "admin" }, keys);
    expect(parseErrorOf(authenticator, `${token} ${token}`)).toMatchObject({
      kind: "unauthenticated",
      code: "INVALID_TOKEN",
    });
    expect(authenticator.authenticate({ authorization: `Bearer  ${token} ` })).toMatchObject({ role: "admin" });
  });

  test("the scheme is case-insensitive", async () => {
    const token = signToken({ role: "admin" }, keys);
    expect(await authenticator.authenticate({ authorization: `bEARER ${token}` })).toMatchObject({ role: "admin" });
  });

  test.each(["abc", "a.b.c", "..", "eyJhbGciOiJIUzI1NiJ9.e30.", `${"x".repeat(9000)}`])(
    "a malformed token is INVALID_TOKEN: %.20s",
    (token) => {
      expect(parseErrorOf(authenticator, token)).toMatchObject({ kind: "unauthenticated", code: "INVALID_TOKEN" });
    },
  );

  test("a token from the future, or for another audience, fails its verification", () => {
    const early = signToken({ role: "admin", nbf: now() + 60 }, keys);
    expect(parseErrorOf(authenticator, early)).toMatchObject({ code: "VERIFICATION_FAILED" });
    const issuedLater = signToken({ role: "admin", iat: now() + 60 }, keys);
    expect(parseErrorOf(authenticator, issuedLater)).toMatchObject({ code: "VERIFICATION_FAILED" });
    const forUs = authenticatorWith({ jwtAudience: "content" });
    expect(parseErrorOf(forUs, signToken({ role: "admin", aud: "billing" }, keys))).toMatchObject({
      code: "VERIFICATION_FAILED",
    });
    expect(parseErrorOf(forUs, signToken({ role: "admin", aud: ["billing"] }, keys))).toMatchObject({
      code: "VERIFICATION_FAILED",
    });
    for (const aud of ["content", ["billing", "content"]]) {
      expect(forUs.authenticate(bearer(signToken({ role: "admin", aud }, keys)))).toMatchObject({ role: "admin" });
    }
  });

  test.each([{}, { aud: [] }, { exp: null, nbf: null, iat: null, aud: null }])(
    "missing optional claims are accepted: %j",
    (claims) => {
      const token = jwt.sign(JSON.stringify({ role: "admin", ...claims }), SECRET);
      expect(authenticatorWith({ jwtAudience: "content" }).authenticate(bearer(token))).toMatchObject({
        role: "admin",
      });
    },
  );

  test("clocks may differ by half a minute", () => {
    for (const claims of [{ exp: now() - 25 }, { nbf: now() + 25 }, { iat: now() + 25 }]) {
      expect(authenticator.authenticate(bearer(signToken({ role: "admin", ...claims }, keys)))).toMatchObject({
        role: "admin",
      });
    }
  });

  test.each([{ exp: "1" }, { nbf: {} }, { iat: true }, { aud: 7 }, { aud: ["content", 7] }, { aud: { a: 1 } }])(
    "a claim with an invalid type fails the verification: %j",
    (claims) => {
      const token = jwt.sign(JSON.stringify({ role: "admin", ...claims }), SECRET);
      expect(parseErrorOf(authenticator, token)).toMatchObject({
        kind: "unauthenticated",
        code: "VERIFICATION_FAILED",
      });
    },
  );

  test("a refresh token is not an access token", () => {
    expect(parseErrorOf(authenticator, signToken({ sub: "7", type: "refresh" }, keys))).toMatchObject({
      code: "INVALID_TOKEN",
    });
  });

  test("claims that Postgres cannot store are refused", () => {
    expect(parseErrorOf(authenticator, signToken({ role: "admin", name: "a\u0000b" }, keys))).toMatchObject({
      code: "VERIFICATION_FAILED",
    });
    expect(parseErrorOf(authenticator, jwt.sign("just text", SECRET))).toMatchObject({ code: "VERIFICATION_FAILED" });
  });

  test("a token without a role has the rights of the anonymous role", async () => {
    expect(await authenticator.authenticate(bearer(signToken({ sub: "7" }, keys)))).toMatchObject({
      kind: "known",
      role: "anon",
    });
  });

  test.each([7, "", ["admin"], {}, false, null])("a role that is not a string (%j) is rejected", (role) => {
    expect(parseErrorOf(authenticator, signToken({ role }, keys))).toMatchObject({ code: "VERIFICATION_FAILED" });
  });

  test("the role may be another claim", async () => {
    const elsewhere = authenticatorWith({ jwtRoleClaim: ["app_metadata", "roles", 1] });
    const token = signToken({ app_metadata: { roles: ["anon", "admin"] } }, keys);
    expect(await elsewhere.authenticate(bearer(token))).toMatchObject({ role: "admin" });
  });

  test.each([
    ["of another claim", { role: "service_role", app_metadata: { roles: ["x", "admin"] } }, "admin"],
    ["of no claim", { role: "service_role", app_metadata: { roles: "admin" } }, "anon"],
  ])("policies read the role %s in the claim role, and digits stay as they are", async (_kind, claims, role) => {
    const elsewhere = authenticatorWith({ jwtRoleClaim: ["app_metadata", "roles", 1] });
    const text = JSON.stringify(claims).replace("{", '{"org":9007199254740993,');
    const caller = await elsewhere.authenticate(bearer(jwt.sign(text, SECRET)));
    expect([caller.role, caller.claims.role]).toEqual([role, role]);
    expect(caller.claimsText).toContain('"org":9007199254740993');
    expect(JSON.parse(caller.claimsText)).toMatchObject({ role });
    expect(caller.claimsText.match(/"role":/g)).toHaveLength(1);
  });

  test("each rejection has a challenge, and does not contain the token", () => {
    const token = signToken({ role: "admin", exp: now() - 31 }, keys);
    const refusal = parseErrorOf(authenticator, token) as ApiError;
    expect(errorHeaders(toHttpError(refusal))["WWW-Authenticate"]).toMatch(
      /^Bearer error="invalid_token", error_description="[\w ]+"$/,
    );
    expect(JSON.stringify(refusal) + refusal.message).not.toContain(token);
  });

  test("other types of credentials are tried in order, after the bearer token", async () => {
    const known = { ...authenticator.anonymous, kind: "known" as const, role: "service_role" };
    const withKeys = authenticatorWith({
      readers: [() => null, async ({ session }) => (session === "k" ? known : null)],
    });
    expect(await withKeys.authenticate({ authorization: null, session: "k" })).toBe(known);
    expect(await withKeys.authenticate({ authorization: null, session: "other" })).toMatchObject({ kind: "anonymous" });
    expect(await withKeys.authenticate(bearer(signToken({ role: "admin" }, keys)))).toMatchObject({ role: "admin" });
  });
});

describe("a token whose claims are no longer valid", () => {
  const refusal = new CredentialError("accountDisabled", "This account is disabled.", "account disabled");
  const bySubject = new Map<unknown, CredentialError | Promise<CredentialError | null>>([
    ["known", refusal],
    ["asked", Promise.resolve(refusal)],
    ["asked in vain", Promise.resolve(null)],
  ]);
  const authenticator = authenticatorWith({ validateClaims: ({ sub }) => bySubject.get(sub) ?? null });
  const tokenOf = (sub: string) => signToken({ sub, role: "authenticated" }, keys);

  test("is rejected at each use, also as an API key", async () => {
    for (const sub of ["known", "asked"]) {
      for (const shown of [bearer(tokenOf(sub)), { authorization: null, apiKey: tokenOf(sub) }]) {
        await expect((async () => authenticator.authenticate(shown))()).rejects.toBe(refusal);
      }
    }
    expect(parseErrorOf(authenticator, tokenOf("known"))).toBe(refusal);
  });

  test("is anonymous for interfaces that check access per field", async () => {
    const client = await authenticator.authenticateOrAnonymous(bearer(tokenOf("asked")));
    expect(client.caller).toBe(authenticator.anonymous);
  });

  test("does not delay tokens that are valid", async () => {
    expect(authenticator.authenticate(bearer(tokenOf("well")))).toMatchObject({ role: "authenticated" });
    expect(await authenticator.authenticate(bearer(tokenOf("asked in vain")))).toMatchObject({ role: "authenticated" });
  });
});

describe("an Authorization header", () => {
  const authenticator = authenticatorWith({ findApiKey: () => authenticatorWith().anonymous });

  test.each([
    "eyJhbGciOiJIUzI1NiJ9.e30.c2ln",
    "Token x",
    "Digest username=a",
    "Basic YTpi",
    "Bearerless abc",
    "Bearer: x",
    "Bearer,x",
    "x",
  ])("that cannot be read is rejected, also with an API key: %s", (authorization) => {
    const refusal = expect.objectContaining({ kind: "unauthenticated", code: "INVALID_TOKEN" });
    expect(() => authenticator.authenticate({ authorization })).toThrow(refusal);
    expect(() => authenticator.authenticate({ authorization, apiKey: "right" })).toThrow(refusal);
  });
});

describe("an API key", () => {
  const known = { ...authenticatorWith().anonymous, kind: "key" as const, role: "service_role" };
  const findKey = (key: string) => (key === "right" ? known : key === "slow" ? Promise.resolve(known) : null);
  const authenticator = authenticatorWith({ findApiKey: findKey });
  const withKey = (apiKey: string) => authenticator.authenticate({ authorization: null, apiKey });

  test("is looked up, unless it is a token of the deployment", async () => {
    expect(withKey("right")).toBe(known);
    expect(await withKey("slow")).toBe(known);
    expect(withKey(signToken({ role: "anon" }, keys))).toMatchObject({ kind: "known", role: "anon" });
  });

  test("that is unknown is rejected, and so is an invalid token", async () => {
    const refusal = expect.objectContaining({ kind: "unauthenticated", code: "INVALID_TOKEN" });
    expect(() => withKey("wrong")).toThrow(refusal);
    expect(() => withKey("a.b.c")).toThrow(refusal);
    expect(() => authenticatorWith().authenticate({ authorization: null, apiKey: "right" })).toThrow(refusal);
  });

  test("is ignored if there is a bearer token", () => {
    const token = signToken({ role: "admin" }, keys);
    expect(authenticator.authenticate({ ...bearer(token), apiKey: "right" })).toMatchObject({ role: "admin" });
  });
});

describe("authenticateOrAnonymous", () => {
  const authenticator = authenticatorWith();

  test("authenticates a valid token", async () => {
    const credentials = bearer(signToken({ role: "admin" }, keys));
    expect(await authenticator.authenticateOrAnonymous(credentials)).toEqual({
      caller: authenticator.authenticate(credentials),
      rejection: null,
    });
  });

  test.each([
    ["Bearer rubbish", "INVALID_TOKEN"],
    ["rubbish", "INVALID_TOKEN"],
    [`Bearer ${signToken({ role: 7 }, keys)}`, "VERIFICATION_FAILED"],
    [`Bearer ${signToken({ role: "admin", exp: now() - 31 }, keys)}`, "TOKEN_EXPIRED"],
  ])("treats an invalid credential as none, and returns the reason: %s, %s", async (authorization, code) => {
    const { caller, rejection: refusal } = await authenticator.authenticateOrAnonymous({ authorization });
    expect(caller).toBe(authenticator.anonymous);
    expect(refusal).toMatchObject({ kind: "unauthenticated", code });
  });

  test("does not hide internal errors", async () => {
    const broken = authenticatorWith({
      readers: [
        () => {
          throw new Error("a fault");
        },
      ],
    });
    await expect(broken.authenticateOrAnonymous({ authorization: null })).rejects.toThrow("a fault");
  });
});

describe("the cache of verified tokens", () => {
  test("returns the same caller until the token expires", async () => {
    vi.useFakeTimers();
    try {
      const authenticator = authenticatorWith();
      const token = signToken({ role: "admin", exp: now() + 60 }, keys);
      const caller = await authenticator.authenticate(bearer(token));
      expect(authenticator.authenticate(bearer(token))).toBe(caller);
      vi.advanceTimersByTime(91_000);
      expect(parseErrorOf(authenticator, token)).toMatchObject({ code: "TOKEN_EXPIRED" });
    } finally {
      vi.useRealTimers();
    }
  });

  test("does not return a caller for the signature alone", async () => {
    const authenticator = authenticatorWith();
    const token = signToken({ sub: "7", role: "authenticated" }, keys);
    await authenticator.authenticate(bearer(token));
    const [head, , signature] = token.split(".");
    const others = Buffer.from(JSON.stringify({ sub: "8", role: "admin" })).toString("base64url");
    expect(parseErrorOf(authenticator, `${head}.${others}.${signature}`)).toMatchObject({
      kind: "unauthenticated",
      code: "INVALID_TOKEN",
    });
    expect(parseErrorOf(authenticator, signature!)).toMatchObject({ kind: "unauthenticated", code: "INVALID_TOKEN" });
  });

  test("is bounded: the oldest token is evicted, and verified again at its next use", async () => {
    const authenticator = authenticatorWith({ jwtCacheEntries: 2 });
    const tokens = ["1", "2", "3"].map((sub) => signToken({ sub, role: "admin" }, keys));
    const [first, , third] = await Promise.all(tokens.map((token) => authenticator.authenticate(bearer(token))));
    expect(authenticator.authenticate(bearer(tokens[2]!))).toBe(third);
    const again = await authenticator.authenticate(bearer(tokens[0]!));
    expect(again).not.toBe(first);
    expect(again).toEqual(first);
  });
});
