import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import {
  Client,
  type OAuthClientProvider,
  type OAuthDiscoveryState,
  type StoredOAuthClientInformation,
  type StoredOAuthTokens,
  StreamableHTTPClientTransport,
  UnauthorizedError,
} from "@modelcontextprotocol/client";
import jwt from "jsonwebtoken";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { freePort } from "../../../bench/measuring/free-port.ts";
import { useFixture } from "../../fixture.ts";
import { installedPeer } from "../../installed-peer.ts";
import { SECRET } from "../../secret.ts";
import { until } from "../../until.ts";
import {
  browserOf,
  CALLBACK,
  decide,
  newApplication,
  newPerson,
  openOAuth,
  type Person,
  signedIn,
} from "../sign-in/oauth/open-oauth.ts";

let person: Person;
let resource: URL;

const fixture = useFixture(() => openOAuth({ MCP: "write" }));
beforeAll(async () => {
  person = await newPerson(fixture);
  resource = new URL("/mcp", fixture.url);
  await fixture.owner.query(`
    create table public.films (id int primary key, title text not null);
    insert into public.films values (1, 'Metropolis');
    grant select, update on public.films to authenticated`);
  const headers = { apikey: jwt.sign({ role: "authenticated" }, SECRET) };
  await until(async () => (await fetch(`${fixture.url}/rest/v1/films`, { headers })).ok);
});

/** Keeps the state of a user's program while it asks for access. */
class Provider implements OAuthClientProvider {
  readonly redirectUrl = CALLBACK;
  readonly clientMetadata = {
    client_name: "Agent",
    redirect_uris: [CALLBACK],
    token_endpoint_auth_method: "none",
    grant_types: ["authorization_code", "refresh_token"],
  };
  address: URL | undefined;
  #client: StoredOAuthClientInformation | undefined;
  #tokens: StoredOAuthTokens | undefined;
  #verifier = "";
  #discovery: OAuthDiscoveryState | undefined;

  clientInformation = () => this.#client;
  saveClientInformation(information: StoredOAuthClientInformation) {
    this.#client = information;
  }
  tokens = () => this.#tokens;
  saveTokens(tokens: StoredOAuthTokens) {
    this.#tokens = tokens;
  }
  redirectToAuthorization(address: URL) {
    this.address = address;
  }
  saveCodeVerifier(verifier: string) {
    this.#verifier = verifier;
  }
  codeVerifier = () => this.#verifier;
  saveDiscoveryState(state: OAuthDiscoveryState) {
    this.#discovery = state;
  }
  discoveryState = () => this.#discovery;
  invalidateCredentials() {
    this.#tokens = undefined;
  }
}

/** Connects the SDK's client by the address of the server alone; the person approves. */
async function connectAgent(): Promise<Client> {
  const authProvider = new Provider();
  const first = new StreamableHTTPClientTransport(resource, { authProvider });
  await expect(new Client({ name: "agent", version: "1" }).connect(first)).rejects.toThrow(UnauthorizedError);
  const landed = await decide(fixture, await browserOf(fixture, person), { address: authProvider.address! });
  await first.finishAuth(landed.searchParams);
  const client = new Client({ name: "agent", version: "1" });
  await client.connect(new StreamableHTTPClientTransport(resource, { authProvider }));
  return client;
}

test("an agent that knows the address alone finds the authorization server, registers, is approved, reads and writes", async () => {
  const agent = await connectAgent();
  const read = await agent.callTool({ name: "read_films", arguments: {} });
  expect(read.structuredContent).toMatchObject({ rows: [{ id: 1, title: "Metropolis" }] });
  const change = { where: [{ column: "id", value: 1 }], set: { title: "M" } };
  expect(await agent.callTool({ name: "update_films", arguments: change })).not.toHaveProperty("isError", true);
  expect((await fixture.owner.query("select title from public.films")).rows).toEqual([{ title: "M" }]);

  const { supabase } = await signedIn(fixture, person);
  const { data: grants } = await supabase.auth.oauth.listGrants();
  expect(grants).toMatchObject([{ client: { name: "Agent" }, scopes: ["read", "write", "offline_access"] }]);
  const { error } = await supabase.auth.oauth.revokeGrant({ clientId: grants![0]!.client.id });
  expect(error).toBeNull();
  // Tokens end within seconds of it.
  let refusal: unknown = null;
  while (refusal === null) {
    // The pause keeps the requests of the grant below their limit.
    await sleep(200);
    await agent.callTool({ name: "read_films", arguments: {} }).catch((error: unknown) => {
      refusal = error;
    });
  }
  expect(refusal).toBeInstanceOf(UnauthorizedError);
  await agent.close();
});

const SUITE = installedPeer("@modelcontextprotocol/conformance/dist/index.js");

test.skipIf(SUITE === null)("the authorization server passes the protocol's own tests", async () => {
  const port = await freePort();
  const { id } = await newApplication(fixture, { redirect_uris: [`http://127.0.0.1:${port}/callback`] });
  const words = ["--url", fixture.url, "--client-id", id, "--resource", resource.href, "--port", String(port)];
  const suite = spawn(process.execPath, [SUITE!, "authorization", ...words], { stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void suite.kill());
  const browser = await browserOf(fixture, person);
  const lines: string[] = [];
  for await (const line of createInterface(suite.stdout)) {
    lines.push(line);
    if (!line.startsWith(`${fixture.url}/auth/v1/oauth/authorize?`)) continue;
    const landed = await decide(fixture, browser, { address: new URL(line) });
    // The suite prints the address before it listens for the answer.
    let arrived: Response | null = null;
    await until(async () => {
      arrived = await fetch(landed).catch(() => null);
      return arrived !== null;
    });
    expect(arrived!).toMatchObject({ status: 200 });
  }
  const [code] = suite.exitCode === null ? await once(suite, "exit") : [suite.exitCode];
  expect([code, lines.join("\n")]).toEqual([0, expect.stringMatching(/Total: 3 passed, 0 failed$/)]);
});
