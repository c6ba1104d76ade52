import jwt from "jsonwebtoken";
import { expect, test } from "vitest";
import { makeCallers } from "../../../engine/caller/caller.ts";
import { makeTokenKeys } from "../../../engine/caller/keys.ts";
import { roleKey } from "../../../engine/caller/role-key.ts";
import { type ClaimPath, parseClaimPath } from "../../../engine/claim-path.ts";
import { SECRET } from "../../secret.ts";

const keys = makeTokenKeys({ jwtSecret: SECRET, jwtSecretIsBase64: false, jwtPrivateKey: null });
const keyAt = (jwtRoleClaim: ClaimPath) => roleKey("service_role", keys, { jwtIssuer: "us", jwtRoleClaim });

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
])("the key of a role stands for it where the role is looked for at %s", async (written) => {
  const jwtRoleClaim = parseClaimPath(written)!;
  const callers = makeCallers({ anonRole: "anon", jwtAudience: null, jwtRoleClaim, jwtCacheEntries: 1, keys });
  const { role } = await callers.identify({ authorization: null, apiKey: keyAt(jwtRoleClaim) });
  expect(role).toBe("service_role");
});
