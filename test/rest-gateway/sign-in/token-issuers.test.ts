import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { SignJWT } from "jose";
import jwt from "jsonwebtoken";
import { afterEach, describe, expect, test } from "vitest";
import { SECRET } from "../../secret.ts";
import { type Gateways, newPerson, openGateways, PASSWORD } from "./gateways.ts";

let gateways: Gateways | null = null;
afterEach(async () => {
  await gateways?.close();
  gateways = null;
});

const pair = generateKeyPairSync("ec", { namedCurve: "P-256" });
const publicJwk = { ...pair.publicKey.export({ format: "jwk" }), kid: "issuer", alg: "ES256" };
const sign = (claims: object, key: KeyObject = pair.privateKey, kid = "issuer") =>
  new SignJWT({ ...claims }).setProtectedHeader({ alg: "ES256", kid }).sign(key);

async function open(settings: NodeJS.ProcessEnv): Promise<Gateways> {
  gateways = await openGateways({ settings: { REST_REQUIRE_APIKEY: "false", ...settings } });
  return gateways;
}
const keysOf = async ({ one, get }: Gateways) => (await get(`${one.url}/.well-known/jwks.json`)).body.keys;

describe("PGRST_JWT_SECRET with the public keys of another issuer", () => {
  test("accepts its tokens on every interface, and has no sign-in of its own", async () => {
    const settings = { JWT_SECRET: undefined, PGRST_JWT_SECRET: JSON.stringify({ keys: [publicJwk] }) };
    const { one, get, post } = await open(settings);
    const token = await sign({ role: "service_role" });
    expect(await get(`${one.url}/rest/v1/users?select=id&limit=1`, { token })).toMatchObject({ status: 200 });
    const graphql = await post(`${one.url}/graphql`, { query: "{ users { id } }" }, { token });
    expect(graphql.body).toMatchObject({ data: { users: expect.any(Array) } });
    expect(await keysOf(gateways!)).toEqual([]);
    expect(gateways!.logged()).toContain("nobody can sign in here");
    expect((await post(`${one.url}/auth/login`, { username: "a@b.example", password: PASSWORD })).status).toBe(404);
    expect((await get(`${one.url}/`, { headers: { accept: "text/html" } })).status).toBe(200);
  });

  test("refuses other tokens with PostgREST's errors", async () => {
    const settings = { JWT_SECRET: undefined, PGRST_JWT_SECRET: JSON.stringify(publicJwk), PGRST_JWT_AUD: "us" };
    const { one, get } = await open({ ...settings, JWT_ISSUER: "https://issuer.example" });
    const errorOf = async (token: string) => {
      const { status, body } = await get(`${one.url}/rest/v1/users?limit=1`, { token });
      return [status, body.code, body.message, body.details];
    };
    const noKey = [401, "PGRST301", "No suitable key or wrong key type"];
    const other = generateKeyPairSync("ec", { namedCurve: "P-256" });
    expect(await errorOf(await sign({}, other.privateKey))).toEqual([
      ...noKey,
      "None of the keys was able to decode the JWT",
    ]);
    const unsuitable = [...noKey, "No suitable key was found to decode the JWT"];
    expect(await errorOf(await sign({}, pair.privateKey, "other"))).toEqual(unsuitable);
    expect(await errorOf(jwt.sign({}, SECRET))).toEqual(unsuitable);
    const pem = pair.publicKey.export({ type: "spki", format: "pem" }) as string;
    expect(await errorOf(jwt.sign({ role: "service_role" }, pem, { algorithm: "HS256" }))).toEqual(unsuitable);
    const claims = { role: "service_role", iss: "https://issuer.example", aud: "us" };
    expect(await errorOf(await sign({ ...claims, aud: "them" }))).toEqual([
      401,
      "PGRST303",
      "JWT not in audience",
      null,
    ]);
    expect(await errorOf(await sign({ ...claims, iss: "https://other.example" }))).toEqual([
      401,
      "PGRST303",
      "JWT not from the expected issuer",
      null,
    ]);
    expect(await errorOf(await sign({ ...claims, exp: 1 }))).toEqual([
      401,
      "PGRST303",
      "JWT expired",
      expect.stringMatching(/^Invalid by \d+ seconds$/),
    ]);
    expect((await get(`${one.url}/rest/v1/users?limit=1`, { token: await sign(claims) })).status).toBe(200);
  });
});

describe("an EC key", () => {
  test("as JWT_PRIVATE_KEY signs with ES256 and is published without its private part", async () => {
    const pem = pair.privateKey.export({ type: "pkcs8", format: "pem" }) as string;
    const signing = await open({ JWT_SECRET: undefined, JWT_PRIVATE_KEY: pem, JWT_PREVIOUS_SECRETS: SECRET });
    const { pair: tokens } = await newPerson(signing);
    expect(jwt.decode(tokens.accessToken, { complete: true })!.header.alg).toBe("ES256");
    expect(jwt.verify(tokens.accessToken, pair.publicKey)).toMatchObject({ role: "authenticated" });
    const keys = await keysOf(signing);
    expect(keys).toEqual([
      { kty: "EC", crv: "P-256", x: publicJwk.x, y: publicJwk.y, alg: "ES256", use: "sig", kid: expect.any(String) },
    ]);
    const refreshed = await signing.post(`${signing.two.url}/auth/refresh`, { refreshToken: tokens.refreshToken });
    expect(refreshed.status).toBe(200);
    // The previous secret still verifies, so that the algorithm can be changed without signing users out.
    const old = jwt.sign({ role: "service_role" }, SECRET);
    expect((await signing.get(`${signing.one.url}/rest/v1/users?limit=1`, { token: old })).status).toBe(200);
  });

  test("of a key set signs too; of the set, neither private parts, secrets nor keys of others are published", async () => {
    const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 });
    const set = {
      keys: [
        { kty: "oct", k: Buffer.from(SECRET).toString("base64url"), kid: "secret", key_ops: ["verify"] },
        { ...pair.privateKey.export({ format: "jwk" }), kid: "ours" },
        { ...rsa.publicKey.export({ format: "jwk" }), kid: "theirs" },
      ],
    };
    const signing = await open({ JWT_SECRET: JSON.stringify(set) });
    const { pair: tokens } = await newPerson(signing);
    expect(jwt.decode(tokens.accessToken, { complete: true })!.header).toMatchObject({ alg: "ES256", kid: "ours" });
    expect(await keysOf(signing)).toEqual([
      { kty: "EC", crv: "P-256", x: publicJwk.x, y: publicJwk.y, alg: "ES256", use: "sig", kid: "ours" },
    ]);
    expect(signing.logged()).not.toContain(set.keys[0]!.k);
    const old = jwt.sign({ role: "service_role" }, SECRET, { keyid: "secret" });
    expect((await signing.get(`${signing.one.url}/rest/v1/users?limit=1`, { token: old })).status).toBe(200);
  });
});
