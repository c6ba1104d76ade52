import { describe, expect, test } from "vitest";
import { makeFindClient } from "../../../../rest-gateway/sign-in/oauth/client-documents.ts";
import { isRegisteredRedirect, readClientMetadata } from "../../../../rest-gateway/sign-in/oauth/client-metadata.ts";
import type { ClientStore, OAuthClient } from "../../../../rest-gateway/sign-in/oauth/client-store.ts";

const ID = "https://films.example/client.json";
const DOCUMENT = { client_id: ID, client_name: "Films", redirect_uris: ["https://films.example/callback"] };

type Served = { readonly body?: unknown; readonly status?: number; readonly headers?: Record<string, string> };

/** A store of one table, and a site with one document. */
function open({ body = DOCUMENT, status = 200, headers = {} }: Served = {}, isEnabled = true) {
  const known = new Map<string, OAuthClient & { readonly fresh_until?: Date }>();
  const fetched: string[] = [];
  let limited = 0;
  const store: Pick<ClientStore, "findClient" | "register"> = {
    findClient: async (id) => known.get(id) ?? null,
    register: async (client) => {
      const times = { created_at: new Date(), updated_at: new Date(), secret_hash: null, is_fresh: true };
      const saved = { ...client, id: client.id!, ...times };
      known.set(saved.id, saved);
      return { client: saved, secret: null };
    },
  };
  const find = makeFindClient({
    store,
    isEnabled,
    limit: async () => void limited++,
    fetchDocument: async (address) => {
      fetched.push(address);
      const text = typeof body === "string" ? body : JSON.stringify(body);
      return new Response(text, { status, headers: { "content-type": "application/json", ...headers } });
    },
  });
  return { find, fetched, known, limited: () => limited };
}

describe("a client whose id is the address of a document", () => {
  test("is what the document says, which is read once while it is fresh", async () => {
    const { find, fetched, limited } = open();
    expect(await find(ID)).toMatchObject({ id: ID, name: "Films", registration: "document", auth_method: "none" });
    await find(ID);
    expect([fetched, limited()]).toEqual([[ID], 1]);
  });

  test.each([
    ["no header", {}, 3_600],
    ["max-age", { "cache-control": "public, max-age=7200" }, 7_200],
    ["a short time", { "cache-control": "max-age=1" }, 300],
    ["a long time", { "cache-control": "max-age=999999999" }, 86_400],
  ])("is fresh as long as its server says, by %s", async (_title, headers, seconds) => {
    const { find, known } = open({ headers });
    await find(ID);
    const left = (known.get(ID)!.fresh_until!.getTime() - Date.now()) / 1000;
    expect(Math.abs(left - seconds)).toBeLessThan(60);
  });

  test.each<[string, Served]>([
    ["names another id", { body: { ...DOCUMENT, client_id: "https://other.example/client.json" } }],
    ["is missing", { status: 404 }],
    ["is a redirect", { status: 302 }],
    ["is HTML", { headers: { "content-type": "text/html" } }],
    ["is no JSON", { body: "{" }],
    ["is a list", { body: [] }],
    ["is too long", { body: { ...DOCUMENT, more: "x".repeat(70_000) } }],
    ["has a secret", { body: { ...DOCUMENT, token_endpoint_auth_method: "client_secret_basic" } }],
    ["has no redirect", { body: { client_id: ID } }],
    ["has an unsafe redirect", { body: { ...DOCUMENT, redirect_uris: ["javascript:alert(1)"] } }],
  ])("is refused if the document %s", async (_title, served) => {
    const { find, known } = open(served);
    await expect(find(ID)).rejects.toMatchObject({ name: "HttpError" });
    expect(known.size).toBe(0);
  });

  test.each([
    "http://films.example/client.json",
    "https://films.example/",
    "https://films.example",
    "https://user@films.example/client.json",
    "https://films.example/client.json#x",
    "https://films.example/a/../client.json",
    "films",
  ])("is none at %s", async (id) => {
    const { find, fetched } = open();
    expect([await find(id), fetched]).toEqual([null, []]);
  });

  test("is none where such clients are switched off", async () => {
    expect(await open({}, false).find(ID)).toBeNull();
  });

  test.each([
    "https://127.0.0.1/client.json",
    "https://localhost/client.json",
    "https://10.0.0.1/x",
    "https://[::1]/x",
  ])("is never read from this machine or its network: %s", async (id) => {
    const find = makeFindClient({
      store: { findClient: async () => null, register: () => Promise.reject(new Error("registered")) },
      isEnabled: true,
      limit: async () => {},
    });
    await expect(find(id)).rejects.toMatchObject({ message: expect.stringContaining("cannot be fetched") });
  });
});

describe("an address to return to", () => {
  test.each([
    ["https://films.example/callback", true],
    ["https://films.example/callback/", false],
    ["https://films.example/Callback", false],
    ["http://127.0.0.1:1234/done", true],
    ["http://127.0.0.1/done", true],
    ["http://localhost:1234/done", false],
    ["http://127.0.0.1:1234/done?x", false],
    ["http://127.0.0.1:1234/done#x", false],
    ["http://user@127.0.0.1/done", false],
    ["http://[::1]:5/done", true],
    ["com.example.app:/done", true],
    ["com.example.app:/other", false],
  ])("is %s: %s", (requested, expected) => {
    const redirect_uris = ["https://films.example/callback", "http://127.0.0.1/done", "http://[::1]/done"];
    const client = { redirect_uris: [...redirect_uris, "com.example.app:/done"] };
    expect(isRegisteredRedirect(requested, client)).toBe(expected);
  });
});

test("what is stored of an application has the lengths that the table allows", () => {
  const { redirect_uris } = DOCUMENT;
  const nameOf = (document: object) => readClientMetadata({ redirect_uris, ...document }, "none").name;
  expect(nameOf({ client_name: `${"a".repeat(199)}😀😀` })).toBe("a".repeat(199));
  const app = `com.example.app:/${"a".repeat(300)}`;
  expect(nameOf({ redirect_uris: [app] })).toBe(app.slice(0, 200));
  const long = Array.from({ length: 11 }, (_, index) => `https://films.example/${index}${"a".repeat(1_950)}`);
  expect(() => nameOf({ redirect_uris: long })).toThrow(expect.objectContaining({ code: "invalid_redirect_uri" }));
  expect(nameOf({ redirect_uris: long.slice(1) })).toBe("films.example");
});

test("an application is read as RFC 7591 says, with what this server can do", () => {
  const { redirect_uris } = DOCUMENT;
  expect(readClientMetadata({ redirect_uris }, "none")).toEqual({
    ...{ name: "films.example", uri: null, logo_uri: null, redirect_uris, scope: null, auth_method: "none" },
    grant_types: ["authorization_code", "refresh_token"],
  });
  const grant_types = ["authorization_code", "urn:ietf:params:oauth:grant-type:device_code"];
  expect(readClientMetadata({ redirect_uris, grant_types }, "none").grant_types).toEqual(["authorization_code"]);
  for (const wrong of [
    { response_types: ["token"] },
    { grant_types: ["password"] },
    { token_endpoint_auth_method: "private_key_jwt" },
    { client_uri: "javascript:alert(1)" },
    { client_name: 7 },
    { client_name: "a\0b" },
    { grant_types: "authorization_code" },
  ]) {
    expect(() => readClientMetadata({ redirect_uris, ...wrong }, "none")).toThrow();
  }
});
