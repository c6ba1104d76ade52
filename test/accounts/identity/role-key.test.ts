import jwt from "jsonwebtoken";
import { expect, test } from "vitest";
import { makeAuthenticator } from "../../../accounts/identity/authenticator.ts";
import { makeTokenKeys } from "../../../accounts/identity/token-keys.ts";
import { makeRoleKey } from "../../../accounts/identity/tokens.ts";
import { type ClaimPath, parseClaimPath } from "../../../config/claim-path.ts";
import { SECRET } from "../../secret.ts";

const keys = makeTokenKeys({ jwtSecret: SECRET, jwtSecretIsBase64: false, jwtPrivateKey: null });
const keyAt = (jwtRoleClaim: ClaimPath) => makeRoleKey("service_role", keys, { jwtIssuer: "us", jwtRoleClaim });

test("the key of a role is always the same", () => {
  expect(jwt.decode(keyAt(["role"]))).toEqual({ iss: "us", role: "service_role" });
  expect(keyAt(["role"])).toBe(keyAt(["role"]));
});

test.each([
  ".role",
  ".app_metadata.role",
  '."https://hasura.io/jwt/claims"."x-hasura-default-role"',
  ".roles[0]",
  '.roles[?(@ ^== "service")]',
])("the key of a role names it if the role is the claim %s", async (written) => {
  const jwtRoleClaim = parseClaimPath(written)!;
  const callers = makeAuthenticator({ anonRole: "anon", jwtAudience: null, jwtRoleClaim, jwtCacheEntries: 1, keys });
  const { role } = await callers.authenticate({ authorization: null, apiKey: keyAt(jwtRoleClaim) });
  expect(role).toBe("service_role");
});
