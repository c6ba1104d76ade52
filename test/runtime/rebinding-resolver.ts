import { createSocket } from "node:dgram";
import dns, { Resolver as CallbackResolver, type LookupAddress } from "node:dns";
import dnsPromises, { Resolver } from "node:dns/promises";
import { once } from "node:events";
import { syncBuiltinESMExports } from "node:module";
import { Socket, type TcpSocketConnectOpts } from "node:net";

/** A DNS server whose answer for a name changes after the first query, and the lookups and connections of this process. */
export type RebindingResolver = AsyncDisposable & {
  /** The names that were queried, since the last reset. */
  readonly queried: readonly string[];
  /** The addresses that connections by name were opened to, since the last reset. */
  readonly connected: readonly string[];
  reset(): void;
};

const HEADER_BYTES = 12;
const TYPE_AND_CLASS_BYTES = 4;
const RESPONSE_FLAGS = 0x8180;
const A_RECORD = 1;

/** The response to a query with one question: one A record with a TTL of 0, or none for other types. */
function toDnsResponse(query: Buffer, address: string): { readonly name: string; readonly response: Buffer } {
  const labels: string[] = [];
  let end = HEADER_BYTES;
  for (let length = query[end]!; length > 0; length = query[end]!) {
    labels.push(query.toString("latin1", end + 1, end + 1 + length));
    end += 1 + length;
  }
  const type = query.readUInt16BE(end + 1);
  const question = query.subarray(HEADER_BYTES, end + 1 + TYPE_AND_CLASS_BYTES);
  const header = Buffer.alloc(HEADER_BYTES);
  for (const [index, value] of [query.readUInt16BE(0), RESPONSE_FLAGS, 1, type === A_RECORD ? 1 : 0].entries())
    header.writeUInt16BE(value, 2 * index);
  // The name is that of the question, the class is IN, and four bytes of an address follow.
  const record = Buffer.from([
    0xc0,
    HEADER_BYTES,
    0,
    A_RECORD,
    0,
    1,
    0,
    0,
    0,
    0,
    0,
    4,
    ...address.split(".").map(Number),
  ]);
  return {
    name: labels.join("."),
    response: Buffer.concat([header, question, ...(type === A_RECORD ? [record] : [])]),
  };
}

/**
 * All lookups of this process, those of `net` too, go to a DNS server on loopback, which answers with `first` once and
 * with `next` from then on. Connections by name to `first` are opened to this machine, so that no packet leaves it.
 */
export async function openRebindingResolver(first: string, next: string): Promise<RebindingResolver> {
  const queried: string[] = [];
  const connected: string[] = [];
  const server = createSocket("udp4");
  server.on("message", (query, { port, address }) => {
    const { name, response } = toDnsResponse(query, queried.length === 0 ? first : next);
    queried.push(name);
    server.send(response, port, address);
  });
  server.bind(0, "127.0.0.1");
  await once(server, "listening");
  const servers = [`127.0.0.1:${server.address().port}`];
  const [resolver, callbackResolver] = [new Resolver(), new CallbackResolver()];
  resolver.setServers(servers);
  callbackResolver.setServers(servers);

  const lookups = { promises: dnsPromises.lookup, callbacks: dns.lookup };
  const { connect } = Socket.prototype;
  const toAddresses = (found: readonly string[]) => found.map((address) => ({ address, family: 4 }));
  const lookup = async (name: string) => toAddresses(await resolver.resolve4(name));
  type Done = (error: Error | null, addresses?: LookupAddress[]) => void;
  const lookupByCallback = (name: string, _options: unknown, done: Done) =>
    callbackResolver.resolve4(name, (error, found) => (error ? done(error) : done(null, toAddresses(found))));
  Object.assign(dnsPromises, { lookup });
  Object.assign(dns, { lookup: lookupByCallback });
  // The address changes between the lookup of a connection and the connection itself, where a router would translate it.
  const translate: (this: Socket, ...args: unknown[]) => unknown = function (...args) {
    const options = (Array.isArray(args[0]) ? args[0][0] : args[0]) as TcpSocketConnectOpts;
    if (options.host?.endsWith(".example")) {
      const inner = (options.lookup ?? lookupByCallback) as (name: string, options: unknown, done: Done) => void;
      const translated = (name: string, asked: { all?: boolean }, done: (...given: unknown[]) => void) =>
        inner(name, { ...asked, all: true }, (error, addresses = []) => {
          if (error) return done(error);
          connected.push(...addresses.map(({ address }) => address));
          const local = addresses.map((found) =>
            found.address === first ? { ...found, address: "127.0.0.1" } : found,
          );
          return asked.all ? done(null, local) : done(null, local[0]!.address, local[0]!.family);
        });
      Object.assign(options, { lookup: translated });
    }
    return Reflect.apply(connect, this, args);
  };
  Object.assign(Socket.prototype, { connect: translate });
  syncBuiltinESMExports();

  return {
    queried,
    connected,
    reset() {
      queried.length = 0;
      connected.length = 0;
    },
    async [Symbol.asyncDispose]() {
      Object.assign(dnsPromises, { lookup: lookups.promises });
      Object.assign(dns, { lookup: lookups.callbacks });
      Object.assign(Socket.prototype, { connect });
      syncBuiltinESMExports();
      await new Promise<void>((closed) => server.close(closed));
    },
  };
}
