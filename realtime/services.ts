import type { Caller, Callers } from "../engine/caller/caller.ts";
import type { Logger } from "../engine/log.ts";
import type { SharedBytes } from "../engine/memory/shared-bytes.ts";
import type { SocketMemory } from "../engine/memory/socket-memory.ts";
import type { Authorization } from "./authorization.ts";
import type { Binding } from "./changes/binding.ts";
import type { Feeds } from "./changes/feeds.ts";
import type { BindingRequest } from "./join-request.ts";
import type { Limits } from "./limits.ts";
import type { Outbox } from "./outbox.ts";
import type { Presence } from "./presence.ts";
import type { Rooms } from "./rooms.ts";
import type { Speech } from "./speech.ts";
import type { Tally } from "./statistics.ts";

/** What channels use of the rest. */
export type ChannelServices = {
  /** Those of now: the settings they are made of may change. */
  readonly callers: () => Callers;
  readonly authorization: Authorization;
  readonly rooms: Rooms;
  readonly speech: Speech;
  readonly presence: Presence;
  readonly feeds: Feeds;
  /** Reads what a caller asks for by a socket; null for what it cannot have. */
  readonly bindingReader: (
    caller: Caller,
    outbox: Outbox,
  ) => (request: BindingRequest, id: number) => Promise<Binding | null>;
  /** Whether a filter of it has failed for that socket a moment ago. */
  readonly isBarred: (outbox: Outbox, binding: Binding) => boolean;
  readonly limits: Limits;
  readonly memory: SocketMemory;
  /** Frames that clients have not read yet. */
  readonly unsentFrames: SharedBytes<Buffer>;
  readonly tally: Tally;
  readonly log: Pick<Logger, "debug" | "warn" | "error">;
};
