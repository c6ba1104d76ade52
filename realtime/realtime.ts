import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { makeBodyLimits } from "../engine/caller/body-limit.ts";
import type { Caller, Callers } from "../engine/caller/caller.ts";
import { callerKey } from "../engine/caller/caller-key.ts";
import { makeContexts } from "../engine/caller/context.ts";
import type { CrossSite } from "../engine/caller/cross-site.ts";
import { settingsOfRole } from "../engine/caller/role-settings.ts";
import type { CatalogKeeper } from "../engine/catalog/keep.ts";
import type { Changes } from "../engine/changes/changes.ts";
import type { Config } from "../engine/config/config.ts";
import type { Database } from "../engine/database/database.ts";
import type { Context } from "../engine/database/statement.ts";
import type { Logger } from "../engine/log.ts";
import { SharedBytes } from "../engine/memory/shared-bytes.ts";
import type { SocketMemory } from "../engine/memory/socket-memory.ts";
import { makeAuthorization } from "./authorization.ts";
import { makeBindingReader } from "./changes/binding.ts";
import { makeBlindSpots } from "./changes/blind-spots.ts";
import { makeVisibilityCheck } from "./changes/check-visibility.ts";
import { makeClaimsReader } from "./changes/claims-read.ts";
import { Feeds } from "./changes/feeds.ts";
import { Filters } from "./changes/filters.ts";
import { makePublished } from "./changes/published.ts";
import { makeAwaitVisible } from "./changes/visible.ts";
import { API_PATH, type HttpRequest, type HttpResponse, MOST_BODY_BYTES, makeHttpBroadcast } from "./http-broadcast.ts";
import { limitsOf } from "./limits.ts";
import { Presence } from "./presence.ts";
import { Relay, type Said } from "./relay.ts";
import { Rooms } from "./rooms.ts";
import type { ChannelServices } from "./services.ts";
import { Sockets } from "./sockets.ts";
import { Speech } from "./speech.ts";
import { makeTally, type RealtimeStatistics } from "./statistics.ts";

export const SOCKET_PATH = "/realtime/v1/websocket";

export type RealtimeServices = {
  readonly config: Config;
  /** Those of now: the settings they are made of may change. */
  readonly callers: () => Callers;
  readonly crossSite: Pick<CrossSite, "isOwnPage">;
  readonly catalog: CatalogKeeper;
  readonly database: Database;
  readonly changes: Changes;
  /** Whose tables the changes are of. */
  readonly publication: string;
  readonly memory: SocketMemory;
  readonly log: Logger;
};

export type Realtime = {
  /** What answers below each path. */
  readonly folders: Readonly<Record<string, (request: HttpRequest) => Promise<HttpResponse>>>;
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
  statistics(): RealtimeStatistics;
  /** Says goodbye to all who are connected. */
  hangUp(milliseconds: number): Promise<void>;
  close(): Promise<void>;
};

/** Channels as supabase-js knows them: changes of tables, broadcasts and presence. */
export function openRealtime(given: RealtimeServices): Realtime {
  const { config, callers, crossSite, catalog, database, changes, publication, memory, log } = given;
  const contexts = makeContexts(config);
  /** The same for all requests of a caller: what a policy says is to depend on nothing else. */
  const contextOf = (caller: Caller): Context => {
    const { role, settings } = contexts(caller, {
      interface: "realtime",
      requestId: "",
      method: "GET",
      path: SOCKET_PATH,
      headers: "{}",
      cookies: "{}",
    });
    return {
      role,
      settings: [...settingsOfRole(catalog.current().roles.get(role)), ...settings],
      callerKey: () => callerKey(caller.claims, () => null),
    };
  };

  const asOwner: Database["asOwner"] = (work) => database.asOwner(work);
  const published = makePublished(asOwner, publication);
  const blindSpots = makeBlindSpots(asOwner);
  const authorization = makeAuthorization({ database, contextOf });
  const rooms = new Rooms();
  const hear = (said: Said, gateway: string | null): void | Promise<void> => {
    if (said.kind === "broadcast") return speech.hear(said);
    if (gateway !== null) presence.hear(said, gateway);
  };
  const timeoutMs = config.realtimeCheckTimeout * 1000;
  const isAnonymous = ({ role }: Caller): boolean => role === callers().anonymous.role;
  const filters = new Filters({ database, contextOf, timeoutMs, isAnonymous });
  const relay = new Relay({ changes, hear, log });
  const speech = new Speech(rooms, relay);
  const presence = new Presence(rooms, relay);
  const feeds = new Feeds(
    {
      changes,
      catalog,
      claims: makeClaimsReader(asOwner),
      published,
      blindSpots,
      checkVisibility: makeVisibilityCheck({ database, contextOf, timeoutMs }),
      filters,
      awaitVisible: makeAwaitVisible(asOwner),
      log,
    },
    {
      hear: (message) => relay.hear(message),
      begun: () => presence.introduce(),
    },
  );

  const services: ChannelServices = {
    callers,
    authorization,
    rooms,
    speech,
    presence,
    feeds,
    limits: limitsOf(config),
    memory,
    unsentFrames: new SharedBytes(memory.unsent),
    tally: makeTally(),
    log,
    bindingReader: (caller, outbox) =>
      makeBindingReader({
        catalog,
        role: caller.role,
        published,
        blindSpots,
        isAnonymous: isAnonymous(caller),
        ask: async (statement) => (await database.run(contextOf(caller), statement, { readOnly: true })).rows,
        readValues: (statement, hasPattern) => filters.readValues({ caller, outbox }, statement, hasPattern),
      }),
    isBarred: (outbox, binding) => filters.isBarred(outbox, binding),
  };
  const sockets = new Sockets({ services, config, crossSite });
  const bodyLimitOf = makeBodyLimits(config, MOST_BODY_BYTES);

  return {
    folders: { [API_PATH]: makeHttpBroadcast({ callers, authorization, speech, bodyLimitOf }) },
    upgrade: (request, socket, head) => void sockets.upgrade(request, socket, head).catch(() => socket.destroy()),
    statistics: () => sockets.statistics(),
    hangUp: (milliseconds) => sockets.close(milliseconds),
    close: async () => {
      await sockets.close(0);
      await presence.close();
      feeds.close();
    },
  };
}
