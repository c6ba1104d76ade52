import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import {
  type Authenticator,
  type Caller,
  callerKey,
  makeCallerSettings,
  NO_REQUEST,
  roleSettings,
} from "#accounts/identity";
import { type CatalogKeeper, makeCatalogRefresh } from "#catalog/loading";
import type { Config } from "#config";
import { type CsrfProtection, makeBodyLimits } from "#http";
import { RequestRecorder } from "#http/observability";
import type { SocketMemory } from "#http/sockets";
import { makeFindMissingPolicyColumns, makePolicyClaimsReader } from "#live/policy-claims";
import { makeAwaitVisible, type ReplicationStream } from "#live/stream";
import type { Database } from "#postgres/database";
import type { StatementContext } from "#postgres/statement";
import { SharedBytes } from "#runtime";
import { type PeerWorkers, Supervisor } from "#runtime/concurrency";
import type { Logger } from "#runtime/log";
import { makeTopicAuthorization } from "./authorization.ts";
import { Broadcaster, TopicMembers } from "./broadcast.ts";
import { makeBindingReader, recordBinding } from "./changes/binding.ts";
import { ChangeFeeds } from "./changes/feeds.ts";
import { FilterEvaluator } from "./changes/filter-evaluation.ts";
import { makePublication } from "./changes/publication.ts";
import { makeVisibilityCheck } from "./changes/row-visibility.ts";
import type { ChannelDependencies } from "./channel.ts";
import {
  BROADCAST_API_PATH,
  type BroadcastRequest,
  type BroadcastResponse,
  MAX_BODY_BYTES,
  makeHttpBroadcast,
} from "./http-broadcast.ts";
import { Presence } from "./presence.ts";
import { readClientLimits } from "./protocol/client-limits.ts";
import { makeRealtimeCounters, type RealtimeStatistics } from "./protocol/counters.ts";
import { type GatewayMessage, GatewayRelay } from "./relay.ts";
import { makeKeptMessageReader } from "./replay.ts";
import { RealtimeSocketServer } from "./socket-server.ts";

export const SOCKET_PATH = "/realtime/v1/websocket";

type RealtimeDependencies = {
  readonly config: Config;
  /** Returns the current authenticator: the settings that it is made from may change. */
  readonly authenticator: () => Authenticator;
  readonly csrf: Pick<CsrfProtection, "isAllowedOrigin">;
  /** The client's address, as far as the proxies in front of the service are trusted. */
  readonly clientAddress: (request: IncomingMessage) => string | null;
  readonly catalog: CatalogKeeper;
  readonly database: Database;
  readonly changes: ReplicationStream;
  /** The publication whose tables are streamed. */
  readonly publication: string;
  readonly memory: SocketMemory;
  readonly peers: PeerWorkers;
  readonly supervisor?: Supervisor;
  readonly recorder?: RequestRecorder;
  readonly log: Logger;
};

export type Realtime = {
  /** The HTTP handler for each path prefix. */
  readonly handlersByPath: Readonly<Record<string, (request: BroadcastRequest) => Promise<BroadcastResponse>>>;
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
  statistics(): RealtimeStatistics;
  /** Closes the sockets, and resolves when they are closed. */
  closeSockets(milliseconds: number): Promise<void>;
  close(): Promise<void>;
};

/** Opens the channels of the protocol that supabase-js uses: table changes, broadcasts and presence. */
export function openRealtime(dependencies: RealtimeDependencies): Realtime {
  const { config, authenticator, csrf, clientAddress } = dependencies;
  const channelDependencies = makeChannelDependencies(dependencies);
  const { authorization, broadcaster, presence, feeds } = channelDependencies;
  const socketServer = new RealtimeSocketServer({ dependencies: channelDependencies, config, csrf, clientAddress });
  const bodyLimitOf = makeBodyLimits(config, MAX_BODY_BYTES);
  return {
    handlersByPath: {
      [BROADCAST_API_PATH]: makeHttpBroadcast({ authenticator, authorization, broadcaster, bodyLimitOf }),
    },
    upgrade: (request, socket, head) => void socketServer.upgrade(request, socket, head).catch(() => socket.destroy()),
    statistics: () => socketServer.statistics(),
    closeSockets: (milliseconds) => socketServer.close(milliseconds),
    close: async () => {
      await socketServer.close(0);
      await presence.close();
      feeds.close();
    },
  };
}

function makeChannelDependencies(
  dependencies: RealtimeDependencies,
): ChannelDependencies & { readonly feeds: ChangeFeeds } {
  const { config, authenticator, catalog, database, changes, memory, peers, log } = dependencies;
  const { recorder = new RequestRecorder() } = dependencies;
  const contextOf = makeSubscriberContexts(config, catalog);
  const asOwner: Database["asOwner"] = (work) => database.asOwner(work);
  const publication = makePublication(asOwner, dependencies.publication);
  const findMissingColumns = makeFindMissingPolicyColumns(asOwner);
  const refreshCatalog = makeCatalogRefresh(catalog);
  const members = new TopicMembers();
  const receive = (message: GatewayMessage, gateway: string | null): void | Promise<void> => {
    if (message.kind === "broadcast") return broadcaster.receive(message);
    if (gateway !== null) presence.receive(message, gateway);
  };
  const timeoutMs = config.realtimeCheckTimeout * 1000;
  const isAnonymous = ({ role }: Caller): boolean => role === authenticator().anonymous.role;
  const filters = new FilterEvaluator({ database, contextOf, timeoutMs, isAnonymous });
  const relay = new GatewayRelay({ changes, receive, peers, log });
  const broadcaster = new Broadcaster(members, relay);
  const presence = new Presence(members, relay);
  const feeds = new ChangeFeeds(
    {
      changes,
      catalog,
      claims: makePolicyClaimsReader(asOwner),
      publication,
      findMissingColumns,
      checkVisibility: makeVisibilityCheck({ database, contextOf, timeoutMs }),
      filters,
      supervisor: dependencies.supervisor ?? new Supervisor({ log }),
      awaitVisible: makeAwaitVisible(asOwner, () => changes.state().history?.timeline ?? null),
      log,
    },
    {
      onMessage: (message) => relay.receive(message),
      onStart: () => presence.exchangeState(),
    },
  );

  return {
    authenticator,
    authorization: makeTopicAuthorization({ database, contextOf }),
    members,
    broadcaster,
    presence,
    readKeptMessages: makeKeptMessageReader(asOwner),
    feeds,
    limits: readClientLimits(config),
    memory,
    unsentFrames: new SharedBytes(memory.unsent),
    counters: makeRealtimeCounters(),
    log,
    bindingReaderFor: (caller, outbox) => {
      const readBinding = makeBindingReader({
        catalog,
        refreshCatalog,
        role: caller.role,
        publication,
        findMissingColumns,
        isAnonymous: isAnonymous(caller),
        query: async (statement) => (await database.run(contextOf(caller), statement, { readOnly: true })).rows,
        readValues: (statement, hasPattern) => filters.readValues({ caller, outbox }, statement, hasPattern),
      });
      return async (request, id) => {
        const binding = await readBinding(request, id);
        if (binding) recordBinding(recorder, caller.role, binding);
        return binding;
      };
    },
    isSuspended: (outbox, binding) => filters.isSuspended(outbox, binding),
  };
}

/** Makes the same context for all requests of a caller, since groups of subscribers are checked once. */
function makeSubscriberContexts(config: Config, catalog: CatalogKeeper): (caller: Caller) => StatementContext {
  const contexts = makeCallerSettings(config);
  return (caller) => {
    const { role, settings } = contexts(caller, {
      ...NO_REQUEST,
      interface: "realtime",
      method: "GET",
      path: SOCKET_PATH,
    });
    return {
      role,
      settings: [...roleSettings(catalog.current().roles.get(role)), ...settings],
      callerKey: () => callerKey(caller.claims, () => null),
    };
  };
}
