import { lookup as lookupInDns } from "node:dns/promises";
import { isIP, type LookupFunction } from "node:net";
import type { CustomFetch } from "openid-client";
import type { Agent, buildConnector, RequestInit } from "undici";
import { addressKind } from "./limits/ip-address.ts";

/**
 * The addresses to which connections are allowed. `public`: those of the internet, with HTTPS. `loopback`: also this
 * machine. `private`: also private networks. Plain HTTP is allowed only to this machine and to private networks.
 */
export type AllowedNetwork = "public" | "loopback" | "private";

/** Resolves all addresses of a host. */
type ResolveHost = (host: string) => Promise<readonly { readonly address: string; readonly family: number }[]>;

type SafeAgentOptions = {
  readonly network: AllowedNetwork;
  /** The maximum number of connections to one origin. */
  readonly connections: number;
  readonly resolve?: ResolveHost;
};

export class AddressNotAllowedError extends Error {
  override name = "AddressNotAllowedError";
}

const CONNECT_TIMEOUT_MS = 5_000;
const IDLE_CONNECTION_MS = 10_000;
/** Connections are replaced after this time, to follow changes of DNS. */
const CONNECTION_LIFETIME_MS = 60_000;

/**
 * An HTTP client that protects against SSRF. The addresses of a host are resolved once, all of them are checked, and the
 * connection is made to one of them, so that a host cannot have another address after the check (DNS rebinding).
 * It follows no redirects and uses no proxy.
 */
export async function makeSafeAgent({ network, connections, resolve = resolveAll }: SafeAgentOptions): Promise<Agent> {
  // The library is loaded when it is needed: it takes 80 ms and 30 MB.
  const undici = await import("undici");
  const resolveOnce = shareLookups(resolve);
  const connectorFor = (isEncrypted: boolean) =>
    undici.buildConnector({
      timeout: CONNECT_TIMEOUT_MS,
      lookup: makeCheckedLookup(resolveOnce, (address) => isAllowed(network, address, isEncrypted)),
    });
  const connectors = { "https:": connectorFor(true), "http:": connectorFor(false) };
  return new undici.Agent({
    connections,
    clientTtl: CONNECTION_LIFETIME_MS,
    keepAliveTimeout: IDLE_CONNECTION_MS,
    pipelining: 1,
    connect: (options, callback) => {
      const problem = findUrlProblem(new URL(`${options.protocol}//${options.host ?? options.hostname}`), network);
      // Sockets report errors later too: undici expects them after its own call has returned.
      if (problem) queueMicrotask(() => callback(problem, null));
      else
        (connectors[options.protocol as keyof typeof connectors] satisfies buildConnector.connector)(options, callback);
    },
  });
}

/** Returns the reason why the URL is refused, independently of the addresses of its host; null if it is allowed. */
export function findUrlProblem(url: URL, network: AllowedNetwork): AddressNotAllowedError | null {
  const refuse = (why: string) => new AddressNotAllowedError(`${url.origin} is not allowed: ${why}`);
  if (url.protocol !== "https:" && (url.protocol !== "http:" || network === "public"))
    return refuse("it is not an https URL");
  if (url.username !== "" || url.password !== "") return refuse("it contains a user name or a password");
  // The URL parser has normalized decimal, octal and hexadecimal spellings.
  const host = withoutBrackets(url.hostname);
  if (isIP(host) === 0) return null;
  return isAllowed(network, host, url.protocol === "https:") ? null : refuse(describeRefusal(host));
}

function isAllowed(network: AllowedNetwork, address: string, isEncrypted: boolean): boolean {
  switch (addressKind(address)) {
    case "public":
      return isEncrypted;
    case "loopback":
      return network !== "public";
    case "private":
      return network === "private";
    default:
      return false;
  }
}

function describeRefusal(address: string): string {
  return addressKind(address) === "public" ? "it is not an https URL" : "it has a private address";
}

/** Returns the lookup of one connection: the addresses are checked, and then connected to. */
function makeCheckedLookup(resolve: ResolveHost, isAllowedAddress: (address: string) => boolean): LookupFunction {
  const resolveChecked = async (host: string) => {
    const addresses = await resolve(host);
    const refused = addresses.find(({ address }) => !isAllowedAddress(address));
    if (!refused && addresses.length > 0) return addresses;
    const why = refused ? describeRefusal(refused.address) : "it has no address";
    throw new AddressNotAllowedError(`${host} is not allowed: ${why}`);
  };
  return (host, { all }, callback) => {
    resolveChecked(host).then(
      (addresses) =>
        all ? callback(null, [...addresses]) : callback(null, addresses[0]!.address, addresses[0]!.family),
      (error) => callback(error, ""),
    );
  };
}

/** Connections that are opened at the same time share one lookup: lookups occupy threads that others need. */
function shareLookups(resolve: ResolveHost): ResolveHost {
  const pending = new Map<string, ReturnType<ResolveHost>>();
  return (host) => {
    const running = pending.get(host);
    if (running) return running;
    const lookup = resolve(host).finally(() => pending.delete(host));
    pending.set(host, lookup);
    return lookup;
  };
}

const resolveAll: ResolveHost = (host) => lookupInDns(host, { all: true });

type SafeFetchOptions = {
  /** The configured URL of the provider; plain HTTP is allowed for one on this machine. */
  readonly providerUrl: string;
  readonly allowsPrivateNetwork: boolean;
  readonly resolve?: ResolveHost;
};

const TIMEOUT_MS = 10_000;
const MAX_RESPONSE_BYTES = 1024 * 1024;
const PROVIDER_CONNECTIONS = 16;

/** Makes a fetch for identity providers: URLs from their metadata must not reach our private network. */
export function makeSafeFetch({
  providerUrl,
  allowsPrivateNetwork,
  resolve = resolveAll,
}: SafeFetchOptions): CustomFetch {
  const isLocalProvider = isLoopback(URL.parse(providerUrl));
  const agents = new Map<AllowedNetwork, Promise<Agent>>();
  const agentFor = (network: AllowedNetwork) => {
    const agent = agents.get(network) ?? makeSafeAgent({ network, connections: PROVIDER_CONNECTIONS, resolve });
    agents.set(network, agent);
    return agent;
  };
  return async (address, options) => {
    const url = new URL(address);
    const isHome = isLocalProvider && isLoopback(url);
    if (url.protocol !== "https:" && !(isHome && url.protocol === "http:"))
      throw new Error(`${url.origin} is not allowed: it is not an https URL`);
    const [{ fetch }, dispatcher] = await Promise.all([
      import("undici"),
      agentFor(allowsPrivateNetwork ? "private" : isHome ? "loopback" : "public"),
    ]);
    const timeout = AbortSignal.timeout(TIMEOUT_MS);
    const signal = options.signal ? AbortSignal.any([options.signal, timeout]) : timeout;
    const init = { ...(options as RequestInit), redirect: "manual", signal, dispatcher } as const;
    const response = await fetch(url, init).catch(throwRefusal);
    return new Response(await readBounded(response), { status: response.status, headers: [...response.headers] });
  };
}

/** fetch() reports every error of a connection as "fetch failed". */
function throwRefusal(error: Error): never {
  if (!(error.cause instanceof AddressNotAllowedError)) throw error;
  throw new Error(`${error.cause.message} (see --private-network)`, { cause: error });
}

export function isLoopback(url: URL | null): boolean {
  return url !== null && /^(localhost|127(\.\d+){3}|\[::1\])$/.test(url.hostname);
}

function withoutBrackets(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, "");
}

async function readBounded({
  body,
}: {
  readonly body: AsyncIterable<Uint8Array> | null;
}): Promise<Buffer<ArrayBuffer> | null> {
  if (!body) return null;
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > MAX_RESPONSE_BYTES)
      throw new Error(`The provider's response is longer than ${MAX_RESPONSE_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
