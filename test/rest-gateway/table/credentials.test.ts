import { describe, expect, test } from "vitest";
import { makeCallers } from "../../../engine/caller/caller.ts";
import { makeTokenKeys } from "../../../engine/caller/keys.ts";
import { signToken } from "../../../engine/caller/tokens.ts";
import { identifyTableCaller } from "../../../rest-gateway/table/credentials.ts";

const keys = makeTokenKeys({
  jwtSecret: "a secret that is long enough to sign with",
  jwtSecretIsBase64: false,
  jwtPrivateKey: null,
});
const callers = makeCallers({ anonRole: "anon", jwtAudience: null, jwtRoleClaim: ["role"], jwtCacheEntries: 10, keys });
const anonKey = signToken({ role: "anon" }, keys);
const serviceKey = signToken({ role: "service_role" }, keys);
const userToken = signToken({ role: "authenticated", sub: "7" }, keys);

function roleOf(headers: Record<string, string>, rawQuery = "", requireApiKey = true) {
  return (identifyTableCaller({ headers, rawQuery }, callers, requireApiKey) as { role: string }).role;
}

describe("identifyTableCaller", () => {
  test("without an apikey it is 401, as at Supabase's door", () => {
    expect(() => roleOf({})).toThrow("No API key found in request");
    expect(() => roleOf({ authorization: `Bearer ${userToken}` })).toThrow("No API key found in request");
  });

  test("the key alone is the caller", () => {
    expect(roleOf({ apikey: anonKey })).toBe("anon");
    expect(roleOf({ apikey: serviceKey })).toBe("service_role");
    expect(roleOf({}, `select=*&apikey=${anonKey}`)).toBe("anon");
  });

  test("beside a key, the token says who uses it", () => {
    expect(roleOf({ apikey: anonKey, authorization: `Bearer ${userToken}` })).toBe("authenticated");
    expect(roleOf({ apikey: serviceKey, authorization: `Bearer ${anonKey}` })).toBe("anon");
  });

  test.each([
    [{ apikey: "rubbish" }],
    [{ apikey: "rubbish", authorization: `Bearer ${userToken}` }],
    [{ apikey: anonKey, authorization: "Bearer rubbish" }],
  ])("a key or a token that is no good is refused: %#", (headers) => {
    expect(() => roleOf(headers)).toThrow(expect.objectContaining({ status: 401, code: "INVALID_TOKEN" }));
  });

  test("the setting opens the door to callers without a key", () => {
    expect(roleOf({}, "", false)).toBe("anon");
    expect(roleOf({ authorization: `Bearer ${userToken}` }, "", false)).toBe("authenticated");
  });
});
