import * as client from "openid-client";
import { beforeAll, describe, expect, test } from "vitest";
import { useFixture } from "../../../fixture.ts";
import {
  type Application,
  approved,
  browserOf,
  CALLBACK,
  decide,
  exchange,
  newApplication,
  newPerson,
  openOAuth,
  type Person,
  requestAuthorization,
  signedIn,
  supabaseFor,
} from "./open-oauth.ts";

let person: Person;
let application: Application;
const fixture = useFixture(() => openOAuth({ AUTH_AUTOCONFIRM: "false" }));
beforeAll(async () => {
  person = await newPerson(fixture);
  application = await newApplication(fixture);
});

/** At `/rest/v1` the token is also the key of the client. */
const bearer = (token: string) => ({ headers: { Authorization: `Bearer ${token}`, apikey: token } });
const statusOf = async (path: string, init: RequestInit = {}) => (await fetch(`${fixture.url}${path}`, init)).status;
const claimsOf = (token: string) => JSON.parse(Buffer.from(token.split(".")[1]!, "base64url").toString());
const headerOf = (token: string) => JSON.parse(Buffer.from(token.split(".")[0]!, "base64url").toString());
const rename = (token: string) =>
  statusOf(`/rest/v1/users?id=eq.${person.userId}`, {
    method: "PATCH",
    headers: { ...bearer(token).headers, "Content-Type": "application/json" },
    body: JSON.stringify({ name: "Ada" }),
  });

describe("a relying party (openid-client)", () => {
  test("signs the user in by discovery, the pages and PKCE, and reads who it is", async () => {
    const { tokens, landed } = await approved(fixture, application, person);
    expect(landed.searchParams.get("iss")).toBe(fixture.url);
    expect(tokens).toMatchObject({ token_type: "bearer", expires_in: 3600, scope: "openid profile email read" });
    const identity = tokens.claims()!;
    expect(identity).toMatchObject({
      iss: fixture.url,
      aud: application.id,
      email: person.email,
      email_verified: true,
    });
    expect(identity.auth_time).toBeGreaterThan(Date.now() / 1000 - 60);
    const user = await client.fetchUserInfo(application.config, tokens.access_token, identity.sub);
    // No request makes a user who is signed in do so again.
    expect(application.config.serverMetadata().prompt_values_supported).toEqual(["none", "consent"]);
    expect(user).toMatchObject({ sub: identity.sub, email: person.email, name: expect.any(String) });
  });

  test("gets an access token of RFC 9068, which acts as the user at the API", async () => {
    const { tokens } = await approved(fixture, application, person);
    expect(headerOf(tokens.access_token)).toMatchObject({ alg: "ES256", typ: "at+jwt" });
    expect(claimsOf(tokens.access_token)).toMatchObject({
      ...{ iss: fixture.url, aud: fixture.url, client_id: application.id, scope: "openid profile email read" },
      ...{ role: "authenticated", jti: expect.any(String), session_id: expect.any(String) },
    });
    const path = `/rest/v1/users?select=id,name&id=eq.${person.userId}`;
    const response = await fetch(`${fixture.url}${path}`, bearer(tokens.access_token));
    expect([response.status, await response.json()]).toEqual([200, [{ id: Number(person.userId), name: "Ada" }]]);
  });

  test("reads only, unless the user has granted more: on each interface the transaction is read-only", async () => {
    const reading = (await approved(fixture, application, person)).tokens.access_token;
    const writing = (await approved(fixture, application, person, { scope: "write" })).tokens.access_token;
    expect([await rename(reading), await rename(writing)]).toEqual([405, 204]);
    const mutate = async (token: string) => {
      const query = `mutation { createArticle(input: { title: "A long title", content: "${"word ".repeat(40)}" }) { success } }`;
      const response = await fetch(`${fixture.url}/graphql`, {
        method: "POST",
        headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
        body: JSON.stringify({ query }),
      });
      return (await response.json()) as { errors?: { extensions: { code: string } }[] };
    };
    expect((await mutate(reading)).errors![0]!.extensions.code).toBe("PERMISSION_DENIED");
    expect((await mutate(writing)).errors).toBeUndefined();
    const plain = { method: "PATCH", body: '{"name": "Ada"}' };
    const headers = (token: string) => ({ Authorization: `Bearer ${token}`, "Content-Type": "application/json" });
    expect(await statusOf(`/users/${person.userId}`, { ...plain, headers: headers(reading) })).toBe(403);
    expect(await statusOf(`/users/${person.userId}`, { ...plain, headers: headers(writing) })).toBe(200);
  });

  test("renews its tokens, also for fewer scopes, and is told what they are worth", async () => {
    const confidential = await newApplication(fixture, { token_endpoint_auth_method: "client_secret_basic" });
    const { tokens } = await approved(fixture, confidential, person);
    const next = await client.refreshTokenGrant(confidential.config, tokens.refresh_token!, { scope: "read" });
    expect(next.scope).toBe("read");
    const introspect = (token: string) => client.tokenIntrospection(confidential.config, token);
    expect(await introspect(next.access_token)).toMatchObject({
      active: true,
      client_id: confidential.id,
      scope: "read",
    });
    expect(await introspect(next.refresh_token!)).toMatchObject({ active: true, token_type: "refresh_token" });
    expect(await introspect(tokens.refresh_token!)).toEqual({ active: false });
    await client.tokenRevocation(confidential.config, next.access_token);
    expect(await introspect(next.refresh_token!)).toEqual({ active: false });
    await expect(client.refreshTokenGrant(confidential.config, next.refresh_token!)).rejects.toMatchObject({
      error: "invalid_grant",
    });
  });

  test("is told that the user refuses", async () => {
    const authorization = await requestAuthorization(application);
    const landed = await decide(fixture, await browserOf(fixture, person), authorization, "deny");
    await expect(exchange(application, landed, authorization)).rejects.toMatchObject({ error: "access_denied" });
    expect(landed.searchParams.get("iss")).toBe(fixture.url);
  });

  test("registers itself, and is used from an address of this machine with any port", async () => {
    const config = await client.dynamicClientRegistration(
      new URL(fixture.url),
      { redirect_uris: ["http://127.0.0.1/done"], client_name: "Agent", token_endpoint_auth_method: "none" },
      client.None(),
      { execute: [client.allowInsecureRequests] },
    );
    const agent = { id: config.clientMetadata().client_id, secret: undefined, config };
    const redirect_uri = "http://127.0.0.1:49152/done";
    const authorization = await requestAuthorization(agent, { redirect_uri });
    const page = await (await browserOf(fixture, person)).go(authorization.address);
    expect(page.text).toContain("Nobody here has checked its name");
    const { tokens } = await approved(fixture, agent, person, { redirect_uri });
    expect(tokens.refresh_token).toBeTypeOf("string");
  });
});

describe("the resources", () => {
  test("are described where clients look for them, with their server", async () => {
    for (const path of ["", "/mcp"]) {
      const response = await fetch(`${fixture.url}/.well-known/oauth-protected-resource${path}`);
      expect(await response.json()).toMatchObject({
        resource: `${fixture.url}${path}`,
        authorization_servers: [fixture.url],
      });
    }
    const [oauth, openid] = await Promise.all(
      ["oauth-authorization-server", "openid-configuration"].map(async (name) =>
        (await fetch(`${fixture.url}/.well-known/${name}`)).json(),
      ),
    );
    expect(oauth).toEqual(openid);
    expect(oauth).toMatchObject({ issuer: fixture.url, code_challenge_methods_supported: ["S256"] });
  });

  test("accept the tokens for themselves only", async () => {
    const resource = `${fixture.url}/mcp`;
    const { tokens } = await approved(fixture, application, person, { resource, scope: "read" });
    expect(claimsOf(tokens.access_token).aud).toBe(resource);
    expect(await statusOf("/rest/v1/articles?limit=1", bearer(tokens.access_token))).toBe(401);
    expect(await statusOf("/users", bearer(tokens.access_token))).toBe(401);
  });
});

describe("supabase.auth", () => {
  test("oauth: shows, approves and denies what applications request, and lists and revokes grants", async () => {
    const user = await newPerson(fixture);
    const { supabase } = await signedIn(fixture, user);
    const { oauth } = supabase.auth;
    const begin = async () => {
      const authorization = await requestAuthorization(application);
      const response = await fetch(authorization.address, { redirect: "manual" });
      const id = new URL(response.headers.get("location")!, fixture.url).searchParams.get("authorization_id")!;
      return { authorization, id };
    };
    const first = await begin();
    const details = await oauth.getAuthorizationDetails(first.id);
    expect(details.error).toBeNull();
    expect(details.data).toMatchObject({
      authorization_id: first.id,
      redirect_uri: CALLBACK,
      client: { id: application.id, name: "Films" },
      user: { email: user.email },
      scope: "openid profile email read",
    });
    const approval = await oauth.approveAuthorization(first.id);
    expect(approval.error).toBeNull();
    const tokens = await exchange(application, new URL(approval.data!.redirect_url), first.authorization);
    expect(await statusOf("/rest/v1/articles?limit=1", bearer(tokens.access_token))).toBe(200);

    const second = await begin();
    const denial = await oauth.denyAuthorization(second.id);
    expect(new URL(denial.data!.redirect_url).searchParams.get("error")).toBe("access_denied");
    expect((await oauth.getAuthorizationDetails(second.id)).error).toMatchObject({ status: 404 });

    const grants = await oauth.listGrants();
    expect(grants.data).toMatchObject([
      { client: { id: application.id, name: "Films" }, scopes: ["openid", "profile", "email", "read"] },
    ]);
    expect((await oauth.revokeGrant({ clientId: application.id })).error).toBeNull();
    expect((await oauth.listGrants()).data).toEqual([]);
    expect((await oauth.revokeGrant({ clientId: application.id })).error).toMatchObject({ status: 404 });
  });

  test("oauth: asks nobody again for the same, if the application keeps a secret", async () => {
    const user = await newPerson(fixture);
    const confidential = await newApplication(fixture, { token_endpoint_auth_method: "client_secret_post" });
    await approved(fixture, confidential, user);
    const authorization = await requestAuthorization(confidential);
    const shown = await (await browserOf(fixture, user)).go(authorization.address);
    expect(shown.url.origin + shown.url.pathname).toBe(CALLBACK);
    const again = await (await browserOf(fixture, user)).go(
      (await requestAuthorization(confidential, { prompt: "consent" })).address,
    );
    expect(again.text).toContain("Give access");
  });

  test("admin.oauth: creates, lists, reads, changes and deletes clients, and renews a secret", async () => {
    const { oauth } = supabaseFor(fixture, "service_role").auth.admin;
    const made = await oauth.createClient({ client_name: "Mine", redirect_uris: [CALLBACK] });
    expect(made.data).toMatchObject({
      client_type: "confidential",
      registration_type: "manual",
      response_types: ["code"],
    });
    const { client_id: id, client_secret: secret } = made.data!;
    expect(secret).toHaveLength(43);
    const read = await oauth.getClient(id);
    expect(read.data).toMatchObject({ client_id: id, client_name: "Mine" });
    expect(read.data).not.toHaveProperty("client_secret");
    const changed = await oauth.updateClient(id, { client_name: "Ours", redirect_uris: ["https://ours.example/x"] });
    expect(changed.data).toMatchObject({ client_name: "Ours", redirect_uris: ["https://ours.example/x"] });
    const renewed = await oauth.regenerateClientSecret(id);
    expect(renewed.data!.client_secret).not.toBe(secret);
    const listed = await oauth.listClients({ page: 1, perPage: 1 });
    expect(listed.data).toMatchObject({ clients: [{ client_name: expect.any(String) }], total: expect.any(Number) });
    expect((await oauth.deleteClient(id)).error).toBeNull();
    expect((await oauth.getClient(id)).error).toMatchObject({ status: 404, code: "oauth_client_not_found" });
    const { error } = await oauth.createClient({ client_name: "x", redirect_uris: ["javascript:alert(1)"] });
    expect(error).toMatchObject({ status: 400, code: "validation_failed" });
    const { error: refused } = await supabaseFor(fixture).auth.admin.oauth.listClients();
    expect(refused).toMatchObject({ status: 403 });
  });

  test("admin.oauth: a client that a document describes can be deleted, and not changed", async () => {
    const { oauth } = supabaseFor(fixture, "service_role").auth.admin;
    const id = "https://films.example/client.json";
    await fixture.owner.query(
      `insert into auth.oauth_clients (id, name, redirect_uris, grant_types, auth_method, registration, fresh_until)
        values ($1, 'Films', $2, '{authorization_code}', 'none', 'document', now() + interval '1 hour')`,
      [id, [CALLBACK]],
    );
    const read = () => oauth.getClient(encodeURIComponent(id));
    expect((await read()).data).toMatchObject({ client_id: id, registration_type: "document", client_name: "Films" });
    const changes = [{ client_name: "Ours" }, { token_endpoint_auth_method: "client_secret_basic" as const }];
    for (const change of changes) {
      const { error } = await oauth.updateClient(encodeURIComponent(id), change);
      expect(error).toMatchObject({
        ...{ status: 400, code: "validation_failed" },
        message: expect.stringContaining("Change its document"),
      });
    }
    expect((await read()).data).toMatchObject({ client_name: "Films", token_endpoint_auth_method: "none" });
    expect((await oauth.deleteClient(encodeURIComponent(id))).error).toBeNull();
    expect((await read()).error).toMatchObject({ status: 404 });
  });
});

describe("the account page", () => {
  test("lists what was granted, and withdraws it", async () => {
    const user = await newPerson(fixture);
    const { tokens } = await approved(fixture, application, user);
    const browser = await browserOf(fixture, user);
    const page = await browser.go(`${fixture.url}/auth/account`);
    expect(page.text).toContain("Applications that act for you");
    const csrf = /name="csrf" value="([^"]+)"/.exec(page.text)![1]!;
    const form = { csrf, client: application.id };
    const headers = { Origin: fixture.url };
    const withdrawn = await browser.go(`${fixture.url}/auth/account/applications/withdraw`, { form, headers });
    expect(withdrawn.text).toContain("The application has no access any more.");
    expect(withdrawn.text).not.toContain("Applications that act for you");
    await expect(client.refreshTokenGrant(application.config, tokens.refresh_token!)).rejects.toMatchObject({
      error: "invalid_grant",
    });
    const again = await browser.go(`${fixture.url}/auth/account/applications/withdraw`, { form, headers });
    expect(again.status).toBe(404);
  });
});
