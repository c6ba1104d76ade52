import { describe, expect, test } from "vitest";
import { type Authenticator, makeAuthenticator } from "../../../accounts/identity/authenticator.ts";
import { makeCallerSettings, NO_REQUEST } from "../../../accounts/identity/caller-settings.ts";
import {
  API_RESOURCE,
  isReadOnlyAccess,
  readOAuthAccess,
  requireWriteAccess,
  resourceAddress,
} from "../../../accounts/identity/oauth-access.ts";
import { makeTokenKeys } from "../../../accounts/identity/token-keys.ts";
import { signToken } from "../../../accounts/identity/tokens.ts";
import { SECRET } from "../../secret.ts";

const keys = makeTokenKeys({ jwtSecret: SECRET, jwtSecretIsBase64: false, jwtPrivateKey: null });
const options = { anonRole: "anon", jwtAudience: null, jwtRoleClaim: ["role"], jwtCacheEntries: 100, keys };
const authenticator = makeAuthenticator({
  ...options,
  resourceAddress: (path) => resourceAddress("https://api.example/", path),
});

type Granted = { readonly aud: unknown; readonly scope?: unknown };

function tokenFor({ aud, scope = "read" }: Granted): string {
  return signToken({ sub: "7", role: "authenticated", client_id: "app", oauth_grant_id: "grant", aud, scope }, keys);
}

async function outcome(token: string, resource?: string, by: Authenticator = authenticator): Promise<string> {
  try {
    const credentials = { authorization: `Bearer ${token}`, ...(resource !== undefined && { resource }) };
    return (await by.authenticate(credentials)).role;
  } catch (error) {
    return (error as { code: string }).code;
  }
}

describe("a token of an application", () => {
  test.each<[string, Granted, string | undefined, string]>([
    ["for the API, at the API", { aud: "https://api.example" }, API_RESOURCE, "authenticated"],
    ["for several audiences", { aud: ["https://api.example", "web"] }, API_RESOURCE, "authenticated"],
    [
      "for MCP, where every token is also for the API (JWT_AUDIENCE)",
      { aud: ["https://api.example/mcp", "https://api.example"] },
      API_RESOURCE,
      "VERIFICATION_FAILED",
    ],
    ["for MCP, at MCP", { aud: "https://api.example/mcp" }, "/mcp", "authenticated"],
    ["for MCP, at the API", { aud: "https://api.example/mcp" }, API_RESOURCE, "VERIFICATION_FAILED"],
    ["for the API, at MCP", { aud: "https://api.example" }, "/mcp", "VERIFICATION_FAILED"],
    ["for another service", { aud: "https://other.example" }, API_RESOURCE, "VERIFICATION_FAILED"],
    ["without an audience", { aud: undefined }, API_RESOURCE, "VERIFICATION_FAILED"],
    ["where accounts are managed", { aud: "https://api.example" }, undefined, "PERMISSION_DENIED"],
    [
      "that knows who the user is only",
      { aud: "https://api.example", scope: "openid" },
      API_RESOURCE,
      "PERMISSION_DENIED",
    ],
    [
      "for one table, at the API",
      { aud: "https://api.example", scope: "read:films" },
      API_RESOURCE,
      "PERMISSION_DENIED",
    ],
    ["for one table, at MCP", { aud: "https://api.example/mcp", scope: "read:films" }, "/mcp", "authenticated"],
  ])("%s", async (_title, granted, resource, expected) => {
    expect(await outcome(tokenFor(granted), resource)).toBe(expected);
  });

  test("is refused as an API key in the same way", async () => {
    const apiKey = tokenFor({ aud: "https://api.example" });
    const attempt = async () => authenticator.authenticate({ authorization: null, apiKey });
    await expect(attempt()).rejects.toMatchObject({ code: "PERMISSION_DENIED" });
    await expect(authenticator.authenticate({ authorization: null, apiKey, resource: API_RESOURCE })).toMatchObject({
      role: "authenticated",
    });
  });

  test("is refused where no resource has an address", async () => {
    const without = makeAuthenticator(options);
    expect(await outcome(tokenFor({ aud: "https://api.example" }), API_RESOURCE, without)).toBe("PERMISSION_DENIED");
  });

  test("tells what was granted", async () => {
    const { claims } = await authenticator.authenticate({
      authorization: `Bearer ${tokenFor({ aud: "https://api.example/mcp", scope: "read write:films" })}`,
      resource: "/mcp",
    });
    expect(readOAuthAccess(claims)).toEqual({
      clientId: "app",
      grantId: "grant",
      resource: "https://api.example/mcp",
      scopes: ["read", "write:films"],
    });
    expect(readOAuthAccess({ sub: "7" })).toBeNull();
  });

  test.each([
    ["read", "", true],
    ["openid read:films", "/mcp", true],
    ["read write", "", false],
    ["read write", "/mcp", false],
    ["write:films", "/mcp", false],
    ["read write:films", "", true],
    ["read write:films", "/mcp/", true],
  ])("of the scopes %s for the resource %j runs in read-only transactions: %s", (scope, resource, isReadOnly) => {
    const ids = { role: "authenticated", oauth_grant_id: "grant", client_id: "app" };
    const claims = { ...ids, scope, iss: "https://api.example", aud: [`https://api.example${resource}`, "web"] };
    expect(isReadOnlyAccess({ claims })).toBe(isReadOnly);
    const attempt = () => requireWriteAccess({ claims });
    if (isReadOnly) expect(attempt).toThrow(expect.objectContaining({ code: "PERMISSION_DENIED" }));
    else expect(attempt).not.toThrow();
    const settingsOf = makeCallerSettings({ usersAccess: "owner", appSettings: [] });
    const { settings } = settingsOf(
      { role: "authenticated", claims, claimsText: "" },
      { interface: "table", ...NO_REQUEST },
    );
    expect(settings.some(([name]) => name === "transaction_read_only")).toBe(isReadOnly);
  });
});

test("the token of a user is accepted everywhere, and is not read-only", async () => {
  const token = signToken({ sub: "7", role: "authenticated", client_id: "theirs", scope: "read" }, keys);
  for (const resource of [undefined, API_RESOURCE, "/mcp"])
    expect(await outcome(token, resource)).toBe("authenticated");
  expect(isReadOnlyAccess({ claims: { client_id: "theirs", scope: "read" } })).toBe(false);
});

test("an ID token is no access token", async () => {
  const token = signToken({ sub: "7", aud: "app", type: "id" }, keys);
  expect(await outcome(token, API_RESOURCE)).toBe("INVALID_TOKEN");
});
