import type { Caller } from "../../engine/caller/caller.ts";
import type { Outbox } from "../outbox.ts";
import type { Version } from "../protocol.ts";
import type { Binding } from "./binding.ts";
import type { Position } from "./position.ts";

/** A channel that hears of changes, by the claims that it has shown last. */
export type Subscriber = {
  readonly caller: Caller;
  readonly bindings: readonly Binding[];
  readonly version: Version;
  readonly topic: string;
  readonly outbox: Outbox;
  /** Of the last change that it was told of, or past which it began. */
  position: Position;
  /** In whose history that is, of one who resumes. */
  readonly history: string | null;
  /** Changes may have been missed: it is told so, and joins again. */
  lose(reason: string): void;
};
