import { createHmac, generateKeyPairSync } from "node:crypto";
import jwt from "jsonwebtoken";
import { describe, expect, test, vi } from "vitest";
import { type Callers, makeCallers } from "../../../engine/caller/caller.ts";
import { makeTokenKeys, type TokenKeys } from "../../../engine/caller/keys.ts";
import { signToken } from "../../../engine/caller/tokens.ts";

const JWT_SECRET = "a secret that is long enough to sign with";
const keys = makeTokenKeys({ jwtSecret: JWT_SECRET, jwtSecretIsBase64: false, jwtPrivateKey: null });
const pem = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey.export({
  type: "pkcs8",
  format: "pem",
}) as string;
const rsaKeys = makeTokenKeys({ jwtSecret: null, jwtSecretIsBase64: false, jwtPrivateKey: pem });
const now = () => Math.floor(Date.now() / 1000);

type Options = Parameters<typeof makeCallers>[0];

function callersWith(options: Partial<Options> = {}): Callers {
  return makeCallers({
    anonRole: "anon",
    jwtAudience: null,
    jwtRoleClaim: ["role"],
    jwtCacheEntries: 100,
    keys,
    ...options,
  });
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

function refusalOf(callers: Callers, token: string) {
  try {
    callers.identify(bearer(token));
  } catch (error) {
    return error;
  }
  throw new Error("the token was accepted");
}

describe.each<[string, TokenKeys]>([
  ["HS256", keys],
  ["RS256", rsaKeys],
])("a bearer token signed by %s", (_algorithm, ownKeys) => {
  const callers = callersWith({ keys: ownKeys });

  test("names the role and the claims, spelled as in the token", async () => {
    const caller = await callers.identify(
      bearer(signToken({ sub: "7", role: "authenticated" }, ownKeys, { timestamp: false })),
    );
    expect(caller).toMatchObject({ kind: "known", role: "authenticated", claims: { sub: "7" }, expiresAt: null });
    expect(caller.claimsText).toBe('{"sub":"7","role":"authenticated"}');
  });

  test("is refused once it has expired", () => {
    const token = signToken({ role: "authenticated", exp: now() - 1 }, ownKeys);
    expect(refusalOf(callers, token)).toMatchObject({ status: 401, code: "TOKEN_EXPIRED" });
  });

  test("is refused when a letter of its signature differs", () => {
    const [head, body, signature] = signToken({ role: "authenticated" }, ownKeys).split(".");
    const first = signature!.startsWith("A") ? "B" : "A";
    expect(refusalOf(callers, `${head}.${body}.${first}${signature!.slice(1)}`)).toMatchObject({
      status: 401,
      code: "INVALID_TOKEN",
    });
  });
});

describe("the algorithm belongs to the deployment, not to the token", () => {
  const unsigned = `${Buffer.from('{"alg":"none"}').toString("base64url")}.${Buffer.from('{"role":"admin"}').toString("base64url")}.`;
  // The classical confusion: the public key, which everybody has, used as an HMAC secret.
  const head = Buffer.from('{"alg":"HS256","typ":"JWT"}').toString("base64url");
  const body = Buffer.from('{"role":"admin"}').toString("base64url");
  const publicPem = rsaKeys.verifying.export({ type: "spki", format: "pem" }) as string;
  const confused = `${head}.${body}.${createHmac("sha256", publicPem).update(`${head}.${body}`).digest("base64url")}`;

  test.each([
    ["none", callersWith(), unsigned],
    ["HS512", callersWith(), jwt.sign({ role: "admin" }, JWT_SECRET, { algorithm: "HS512" })],
    ["RS256 where HS256 is set", callersWith(), signToken({ role: "admin" }, rsaKeys)],
    ["HS256 where RS256 is set", callersWith({ keys: rsaKeys }), signToken({ role: "admin" }, keys)],
    ["the public key as a secret", callersWith({ keys: rsaKeys }), confused],
  ])("%s is refused", (_what, callers, token) => {
    expect(refusalOf(callers, token)).toMatchObject({ status: 401, code: "INVALID_TOKEN" });
  });
});

describe("identify", () => {
  const callers = callersWith();

  test.each([[null], [""], ["Basic YTpi"], ["Bearer"], ["Bearer "]])(
    "without a token (%j) the caller is anonymous",
    async (authorization) => {
      expect(await callers.identify({ authorization })).toBe(callers.anonymous);
      expect(callers.anonymous).toMatchObject({ kind: "anonymous", role: "anon", claimsText: '{"role":"anon"}' });
    },
  );

  test("the scheme's letters may be of any case", async () => {
    const token = signToken({ role: "admin" }, keys);
    expect(await callers.identify({ authorization: `bEARER ${token}` })).toMatchObject({ role: "admin" });
  });

  test.each(["abc", "a.b.c", "..", "eyJhbGciOiJIUzI1NiJ9.e30.", `${"x".repeat(9000)}`])(
    "a malformed token is INVALID_TOKEN: %.20s",
    (token) => {
      expect(refusalOf(callers, token)).toMatchObject({ status: 401, code: "INVALID_TOKEN" });
    },
  );

  test("a token from the future, or for another audience, fails its verification", () => {
    const early = signToken({ role: "admin", nbf: now() + 60 }, keys);
    expect(refusalOf(callers, early)).toMatchObject({ code: "VERIFICATION_FAILED" });
    const forUs = callersWith({ jwtAudience: "content" });
    expect(refusalOf(forUs, signToken({ role: "admin", aud: "billing" }, keys))).toMatchObject({
      code: "VERIFICATION_FAILED",
    });
    expect(refusalOf(forUs, signToken({ role: "admin" }, keys))).toMatchObject({ code: "VERIFICATION_FAILED" });
    expect(forUs.identify(bearer(signToken({ role: "admin", aud: ["billing", "content"] }, keys)))).toMatchObject({
      role: "admin",
    });
  });

  test("a refresh token identifies nobody", () => {
    expect(refusalOf(callers, signToken({ sub: "7", type: "refresh" }, keys))).toMatchObject({ code: "INVALID_TOKEN" });
  });

  test("claims that Postgres could not hold are refused", () => {
    expect(refusalOf(callers, signToken({ role: "admin", name: "a\u0000b" }, keys))).toMatchObject({
      code: "INVALID_TOKEN",
    });
    expect(refusalOf(callers, jwt.sign("just text", JWT_SECRET))).toMatchObject({ code: "INVALID_TOKEN" });
  });

  test("a token without a role is known, and has the rights of the anonymous", async () => {
    expect(await callers.identify(bearer(signToken({ sub: "7" }, keys)))).toMatchObject({
      kind: "known",
      role: "anon",
    });
  });

  test.each([7, "", ["admin"], {}, false])("a role that is no name (%j) is refused", (role) => {
    expect(refusalOf(callers, signToken({ role }, keys))).toMatchObject({ code: "VERIFICATION_FAILED" });
  });

  test("the role may lie elsewhere in the claims", async () => {
    const elsewhere = callersWith({ jwtRoleClaim: ["app_metadata", "roles", 1] });
    const token = signToken({ app_metadata: { roles: ["anon", "admin"] } }, keys);
    expect(await elsewhere.identify(bearer(token))).toMatchObject({ role: "admin" });
  });

  test("every refusal carries a challenge, and says nothing of the token", () => {
    const token = signToken({ role: "admin", exp: now() - 1 }, keys);
    const refusal = refusalOf(callers, token) as { headers: Record<string, string>; message: string };
    expect(refusal.headers["WWW-Authenticate"]).toMatch(/^Bearer error="invalid_token", error_description="[\w ]+"$/);
    expect(JSON.stringify(refusal) + refusal.message).not.toContain(token);
  });

  test("other kinds of credential are asked in turn, after the bearer token", async () => {
    const known = { ...callers.anonymous, kind: "known" as const, role: "service_role" };
    const withKeys = callersWith({
      readers: [() => null, async ({ authorization }) => (authorization === "Key k" ? known : null)],
    });
    expect(await withKeys.identify({ authorization: "Key k" })).toBe(known);
    expect(await withKeys.identify({ authorization: "Key other" })).toMatchObject({ kind: "anonymous" });
    expect(await withKeys.identify(bearer(signToken({ role: "admin" }, keys)))).toMatchObject({ role: "admin" });
  });
});

describe("identifyOrAnonymous", () => {
  test("takes a bad token for none", async () => {
    const callers = callersWith();
    expect(await callers.identifyOrAnonymous(bearer("rubbish"))).toBe(callers.anonymous);
  });

  test("does not hide a fault of our own", async () => {
    const broken = callersWith({
      readers: [
        () => {
          throw new Error("a fault");
        },
      ],
    });
    await expect(broken.identifyOrAnonymous({ authorization: null })).rejects.toThrow("a fault");
  });
});

describe("the cache of verified tokens", () => {
  test("gives the same caller again, until the token expires", async () => {
    vi.useFakeTimers();
    try {
      const callers = callersWith();
      const token = signToken({ role: "admin", exp: now() + 60 }, keys);
      const caller = await callers.identify(bearer(token));
      expect(callers.identify(bearer(token))).toBe(caller);
      vi.advanceTimersByTime(61_000);
      expect(refusalOf(callers, token)).toMatchObject({ code: "TOKEN_EXPIRED" });
    } finally {
      vi.useRealTimers();
    }
  });

  test("is bounded: the oldest is forgotten, and verified anew when it comes back", async () => {
    const callers = callersWith({ jwtCacheEntries: 2 });
    const tokens = ["1", "2", "3"].map((sub) => signToken({ sub, role: "admin" }, keys));
    const [first, , third] = await Promise.all(tokens.map((token) => callers.identify(bearer(token))));
    expect(callers.identify(bearer(tokens[2]!))).toBe(third);
    const again = await callers.identify(bearer(tokens[0]!));
    expect(again).not.toBe(first);
    expect(again).toEqual(first);
  });
});
