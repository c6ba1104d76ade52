import { describe, expect, test } from "vitest";
import { makeAuthenticator } from "../../../accounts/identity/authenticator.ts";
import type { Caller } from "../../../accounts/identity/caller.ts";
import { makeTokenKeys } from "../../../accounts/identity/token-keys.ts";
import { signToken } from "../../../accounts/identity/tokens.ts";
import { authenticateTableCaller } from "../../../rest-gateway/table/authenticate.ts";
import { SECRET } from "../../secret.ts";

const keys = makeTokenKeys({
  jwtSecret: SECRET,
  jwtSecretIsBase64: false,
  jwtPrivateKey: null,
});
const PROGRAM_KEY = "a-key-of-a-program-as-it-stands-in-the-table";
const program: Caller = { kind: "key", role: "service_role", claims: {}, claimsText: "{}", expiresAt: null };
const callers = makeAuthenticator({
  anonRole: "anon",
  jwtAudience: null,
  jwtRoleClaim: ["role"],
  jwtCacheEntries: 10,
  keys,
  findApiKey: async (key) => (key === PROGRAM_KEY ? program : null),
});
const anonKey = signToken({ role: "anon" }, keys);
const serviceKey = signToken({ role: "service_role" }, keys);
const userToken = signToken({ role: "authenticated", sub: "7" }, keys);

function roleOf(headers: Record<string, string>, rawQuery = "", requireApiKey = true) {
  return (authenticateTableCaller({ headers, rawQuery }, callers, requireApiKey) as { role: string }).role;
}

describe("identifyTableCaller", () => {
  test("without an apikey it is 401, as in Supabase", () => {
    expect(() => roleOf({})).toThrow("No API key found in request");
    expect(() => roleOf({ apikey: "" })).toThrow("No API key found in request");
    expect(() => roleOf({}, "apikey=")).toThrow("No API key found in request");
    expect(() => roleOf({ authorization: `Bearer ${userToken}` })).toThrow("No API key found in request");
  });

  test("the key alone is the caller", () => {
    expect(roleOf({ apikey: anonKey })).toBe("anon");
    expect(roleOf({ apikey: serviceKey })).toBe("service_role");
    expect(roleOf({}, `select=*&apikey=${anonKey}`)).toBe("anon");
    expect(roleOf({ apikey: "" }, `apikey=${serviceKey}`)).toBe("service_role");
    expect(roleOf({ apikey: anonKey }, `apikey=${serviceKey}`)).toBe("anon");
  });

  test("the user of a token beside a key is the caller", () => {
    expect(roleOf({ apikey: anonKey, authorization: `Bearer ${userToken}` })).toBe("authenticated");
    expect(roleOf({ apikey: serviceKey, authorization: `Bearer ${anonKey}` })).toBe("anon");
  });

  test("a key may be an API key of an account", async () => {
    const identify = (headers: Record<string, string>) =>
      authenticateTableCaller({ headers, rawQuery: "" }, callers, true);
    expect(await identify({ apikey: PROGRAM_KEY })).toBe(program);
    expect(await identify({ apikey: PROGRAM_KEY, authorization: `Bearer ${PROGRAM_KEY}` })).toBe(program);
    expect(await identify({ apikey: PROGRAM_KEY, authorization: `Bearer ${userToken}` })).toMatchObject({
      role: "authenticated",
    });
  });

  test("an invalid API key is refused, with any token beside it", async () => {
    const refusal = { kind: "unauthenticated", code: "INVALID_TOKEN" };
    for (const authorization of [undefined, "Bearer rubbish", `Bearer ${userToken}`]) {
      const headers = { apikey: "unknown", ...(authorization !== undefined && { authorization }) };
      await expect(authenticateTableCaller({ headers, rawQuery: "" }, callers, true)).rejects.toMatchObject(refusal);
    }
  });

  test.each([
    [{ apikey: "a.b.c" }],
    [{ apikey: "a.b.c", authorization: `Bearer ${userToken}` }],
    [{ apikey: anonKey, authorization: "Bearer rubbish" }],
    [{ apikey: anonKey, authorization: "Bearer" }],
  ])("an invalid key or token is refused: %#", (headers) => {
    expect(() => roleOf(headers)).toThrow(expect.objectContaining({ kind: "unauthenticated", code: "INVALID_TOKEN" }));
  });

  test("the setting allows requests without a key", () => {
    expect(roleOf({}, "", false)).toBe("anon");
    expect(roleOf({ authorization: `Bearer ${userToken}` }, "", false)).toBe("authenticated");
  });
});
