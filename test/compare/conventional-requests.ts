import fc from "fast-check";
import { type Json, readDocument } from "../rest-gateway/openapi/resource/operations.ts";
import { requestsOf } from "../rest-gateway/openapi/resource/requests.ts";
import { authorizationOf, CALLERS, type CallerName } from "./callers.ts";
import type { ComparedRequest } from "./send-request.ts";

/** A password is hashed for each of these, which takes as long as a hundred other requests. */
const EXPENSIVE = /^(auth|session)\./;
const SEED = 20;

/** Requests of every documented operation by every caller, and some by hand: signing in, pages, refusals of HTTP. */
export async function conventionalRequests(url: string): Promise<ComparedRequest[]> {
  const generated: ComparedRequest[] = [];
  for (const caller of CALLERS) {
    for (const version of [1, 2]) generated.push(...(await documentedRequests(url, caller, version)));
  }
  return [...byHand(), ...generated];
}

async function documentedRequests(url: string, caller: CallerName, version: number): Promise<ComparedRequest[]> {
  const response = await fetch(`${url}/openapi.json?version=${version}`, { headers: authorizationOf(caller) });
  const document = readDocument((await response.json()) as Json);
  return document.operations.flatMap((operation, index) =>
    (["as documented", "wild"] as const).flatMap((responseOptions, which) => {
      const numRuns = EXPENSIVE.test(operation.id) ? 1 : 2;
      const seed = SEED + 1_000 * index + 10 * which + version;
      return fc
        .sample(requestsOf(operation, document, responseOptions), { seed, numRuns })
        .map(({ url: path, headers, body }) => ({
          method: operation.method,
          path,
          headers: { ...authorizationOf(caller), ...printable(headers) },
          body: body === null ? null : Buffer.from(body).toString("base64"),
        }));
    }),
  );
}

function printable(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([, value]) => /^[\t\x20-\x7e]*$/.test(value)));
}

function ask(
  method: string,
  path: string,
  body: unknown = null,
  headers: Record<string, string> = {},
): ComparedRequest {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return {
    method,
    path,
    headers: { ...(body !== null && { "Content-Type": "application/json" }), ...headers },
    body: body === null ? null : Buffer.from(text).toString("base64"),
  };
}

const ADA = { name: "Ada", email: "ada@example.org", password: "Correct horse 7 battery" };

function byHand(): ComparedRequest[] {
  const asUser = authorizationOf("user 1");
  const reads = [
    "/",
    "/health",
    "/health/live",
    "/health/ready",
    "/metrics",
    "/version",
    "/openapi.json",
    "/openapi.json?version=1",
    "/docs",
    "/graphiql",
    "/login",
    "/register",
    "/nowhere",
    "/users",
    "/users?skip=2&limit=3",
    "/users?fields=id,name&sort=name:desc",
    "/users?limit=0",
    "/users?limit=x",
    "/users?nothing=1",
    "/users?age=25",
    "/users/1",
    "/users/999",
    "/users/x",
    "/users/1/articles",
    "/api/v1/articles",
    "/api/v1/articles?links=true",
    "/api/v1/articles?page=2&per_page=5",
    "/api/v1/articles?status=DRAFT&sort=created_at",
    "/api/v1/articles/3",
    "/api/v1/articles/3?fields=title",
    "/api/v1/articles/3/comments",
    "/api/v1/odd-things",
    "/api/v1/odd-things/c1,1",
    "/api/v1/notes",
    "/api/v2/articles",
    "/api/v3/articles",
    "/api/v9/articles",
    "/api/v1",
    "/api",
    "/rest/v1",
    "/rest/v1/",
    "/rest/v1/users?select=id,name&limit=2",
    "/rest/v1/articles?select=id,title,users(name)&order=id&limit=3",
    "/rest/v1/nothing",
    "/auth/session",
    "/csrf-token",
    "/favicon.ico",
    "/robots.txt",
    "/.well-known/jwks.json",
  ];
  const accepts = [
    "application/json",
    "text/html",
    "text/csv",
    "application/xml",
    "*/*;q=0.1",
    "application/vnd.api.v2+json",
  ];
  return [
    ...reads.flatMap((path) => [
      ask("GET", path),
      ask("HEAD", path),
      ask("OPTIONS", path),
      ask("GET", path, null, asUser),
    ]),
    ...reads.slice(0, 30).map((path) => ask("POST", path)),
    ...["/users", "/api/v1/articles", "/rest/v1/users", "/"].flatMap((path) =>
      accepts.map((Accept) => ask("GET", path, null, { Accept })),
    ),
    ...["/users", "/api/v1/articles", "/rest/v1/users", "/graphql"].flatMap((path) => [
      ask("GET", path, null, { Origin: "https://elsewhere.example" }),
      ask("OPTIONS", path, null, { Origin: "https://elsewhere.example", "Access-Control-Request-Method": "POST" }),
      ask("GET", path, null, { Authorization: "Bearer nonsense" }),
      ask("GET", path, null, { Authorization: "Token x" }),
      ask("GET", path, null, { Authorization: "Basic eDp5" }),
      ask("POST", path, "{", {}),
      ask("POST", path, '{"a":1}', { "Content-Type": "text/plain" }),
      ask("POST", path, "[]"),
      ask("POST", path, "[".repeat(2_000)),
      ask("TRACE", path),
      ask("PUT", path, "{}"),
      ask("DELETE", path),
    ]),
    ask("POST", "/users", { name: "Grace", email: "grace@example.org", age: 30 }),
    ask("POST", "/users", { name: "Grace", email: "grace@example.org" }),
    ask("POST", "/users", { name: "", email: "no address" }),
    ask("POST", "/users", { name: "Grace", email: "new@example.org" }, { "Idempotency-Key": "key-1" }),
    ask("POST", "/users", { name: "Grace", email: "new@example.org" }, { "Idempotency-Key": "key-1" }),
    ask("POST", "/users", { name: "Other", email: "new@example.org" }, { "Idempotency-Key": "key-1" }),
    ask("PUT", "/users/1", { name: "Changed", email: "changed@example.org" }),
    ask("PATCH", "/users/1", { age: 44 }),
    ask("PATCH", "/users/1", { age: -1 }),
    ask("DELETE", "/users/12"),
    ask("DELETE", "/users/12"),
    ask("POST", "/api/v1/articles", { title: "A new one by user 1", content: "c" }, asUser),
    ask("POST", "/api/v1/articles", { title: "no", content: "c" }, asUser),
    ask("POST", "/api/v1/articles", { title: "A new one by nobody", content: "c" }),
    ask("PATCH", "/api/v1/articles/12", { title: "A changed title of 12" }, asUser),
    ask("PATCH", "/api/v1/articles/13", { title: "A changed title of 13" }, asUser),
    ask("POST", "/api/v1/articles/12/publish", {}, asUser),
    ask("DELETE", "/api/v1/articles/12", null, asUser),
    ask("POST", "/rest/v1/rpc/shout", { word: "a" }),
    ask("GET", "/rest/v1/rpc/shout?word=b&times=3"),
    ask("POST", "/auth/register", ADA),
    ask("POST", "/auth/register", ADA),
    ask("POST", "/auth/register", { name: "", email: "x", password: "1" }),
    ask("POST", "/auth/login", { email: ADA.email, password: ADA.password }),
    ask("POST", "/auth/login", { email: ADA.email, password: "wrong" }),
    ask("POST", "/auth/login", { email: "nobody@example.org", password: "wrong" }),
    ask("POST", "/auth/refresh", { refresh_token: "nonsense" }),
    ask("POST", "/auth/logout", {}),
    ask("GET", "/auth/me", null, asUser),
    ask("GET", "/auth/sessions", null, asUser),
    ask("GET", "/auth/api-keys", null, asUser),
    ask("POST", "/auth/password/forgot", { email: ADA.email }),
    ask("POST", "/auth/password/reset", { token: "nonsense", password: "Correct horse 7 battery" }),
    ask("GET", "/auth/verify?token=nonsense"),
    ask("GET", "/auth/providers"),
    ask("GET", "/auth/oauth/google"),
    ask("POST", "/api/mfa/enroll", {}, asUser),
    ask("POST", "/api/mfa/verify", { code: "000000" }, asUser),
    ask("GET", "/api/mfa/status", null, asUser),
  ];
}
