import { generateKeyPairSync } from "node:crypto";
import jwt from "jsonwebtoken";
import { afterEach, describe, expect, test, vi } from "vitest";
import { makeAuthenticator } from "../../accounts/identity/authenticator.ts";
import { makeTokenKeys } from "../../accounts/identity/token-keys.ts";
import { makeTokenIssuer } from "../../accounts/token-pairs.ts";
import { CONFIG, claimsOf, KEYS } from "./open-accounts.ts";

afterEach(() => vi.useRealTimers());

const mint = makeTokenIssuer({ ...CONFIG, keys: KEYS });
const now = () => Math.floor(Date.now() / 1000);
const claims = () => ({ sub: "7", name: "Ada", role: "admin", permissions: ["articles:review"], iat: now() });

describe("an access token", () => {
  test("is signed with RS256 by a private key and verified with its public key", () => {
    const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
    const pem = privateKey.export({ type: "pkcs8", format: "pem" }) as string;
    const keys = makeTokenKeys({ jwtSecret: null, jwtSecretIsBase64: false, jwtPrivateKey: pem });
    const rsa = makeTokenIssuer({ ...CONFIG, keys });
    const { accessToken, refreshToken } = rsa.issuePair(claims(), rsa.newRefreshToken("7"));
    expect(jwt.decode(accessToken, { complete: true })?.header.alg).toBe("RS256");
    expect(jwt.verify(accessToken, keys.verifying[0]!.key, { algorithms: ["RS256"] })).toMatchObject({ sub: "7" });
    expect(rsa.readRefreshToken(refreshToken)).toEqual({ userId: "7" });
    expect(() => mint.readRefreshToken(refreshToken)).toThrow();
  });

  test("has the deployment's audience if one is configured", () => {
    const forUs = makeTokenIssuer({ ...CONFIG, jwtAudience: "us", keys: KEYS });
    expect(claimsOf(forUs.issuePair(claims(), "").accessToken).aud).toBe("us");
    expect(claimsOf(mint.issuePair(claims(), "").accessToken)).not.toHaveProperty("aud");
  });

  test.each([
    [["role"], {}],
    [["app_metadata", "role"], { app_metadata: { role: "admin" } }],
    [["roles", 0], { roles: ["admin"] }],
  ] as const)("contains the role at the configured path %j", (jwtRoleClaim, expected) => {
    const { accessToken } = makeTokenIssuer({ ...CONFIG, jwtRoleClaim, keys: KEYS }).issuePair(claims(), "");
    expect(claimsOf(accessToken)).toMatchObject({ role: "admin", ...expected });
    const callers = makeAuthenticator({
      anonRole: "anon",
      jwtAudience: null,
      jwtRoleClaim,
      jwtCacheEntries: 0,
      keys: KEYS,
    });
    expect(callers.authenticate({ authorization: `Bearer ${accessToken}` })).toMatchObject({ role: "admin" });
  });
});

describe("a refresh token", () => {
  const parseErrorOf = (token: string) => {
    try {
      return mint.readRefreshToken(token);
    } catch (error) {
      return error;
    }
  };

  test("belongs to one user and is always different", () => {
    expect(mint.readRefreshToken(mint.newRefreshToken("7"))).toEqual({ userId: "7" });
    expect(mint.newRefreshToken("7")).not.toBe(mint.newRefreshToken("7"));
  });

  test("is not an access token", () => {
    const { accessToken } = mint.issuePair(claims(), "");
    expect(parseErrorOf(accessToken)).toMatchObject({ kind: "invalid", code: "VALIDATION_ERROR" });
  });

  test("is refused with a foreign signature, no signature or a malformed text", () => {
    const good = { sub: "7", type: "refresh", exp: now() + 60 };
    const forged = [
      jwt.sign(good, "another secret of more than thirty-two letters"),
      jwt.sign(good, "", { algorithm: "none" }),
      jwt.sign(good, KEYS.signing.key, { algorithm: "HS384" }),
      "rubbish",
      "a.b.c",
      "",
    ];
    for (const token of forged) {
      expect(parseErrorOf(token)).toMatchObject({ kind: "unauthenticated", code: "INVALID_TOKEN" });
    }
  });

  test("expires after seven days", () => {
    const token = mint.newRefreshToken("7");
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 7 * 86_400_000 - 1_000 });
    expect(parseErrorOf(token)).toEqual({ userId: "7" });
    vi.setSystemTime(Date.now() + 60_000);
    expect(parseErrorOf(token)).toMatchObject({ kind: "unauthenticated", code: "TOKEN_EXPIRED" });
  });
});
