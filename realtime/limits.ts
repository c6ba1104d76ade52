import type { Config } from "../engine/config/config.ts";

/** What one socket may do; 0 is no limit. */
export type Limits = {
  readonly channels: number;
  /** Changes that one channel asks for. */
  readonly bindings: number;
  readonly joinsPerSecond: number;
  readonly messagesPerSecond: number;
  readonly bytesPerSecond: number;
  readonly presencesPerSecond: number;
};

export function limitsOf(config: Config): Limits {
  return {
    channels: config.realtimeMaxChannels,
    bindings: config.realtimeMaxBindings,
    joinsPerSecond: config.realtimeMaxJoins,
    messagesPerSecond: config.realtimeMaxMessages,
    bytesPerSecond: config.realtimeMaxBytes,
    presencesPerSecond: config.realtimeMaxPresences,
  };
}
