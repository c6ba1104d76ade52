/** Counted since the start; whoever counts adds to it. */
export type RealtimeCounters = {
  /** Frames of clients, and their bytes. */
  messagesIn: number;
  bytesIn: number;
  messagesOut: number;
  bytesOut: number;
  /** Sockets that were closed because their clients read too slowly. */
  overwhelmed: number;
  /** Channels that were told that they may have missed something. */
  gaps: number;
  /** Joins that were refused for another reason than a limit. */
  refusals: number;
  /** Channels that were ended, joins that were refused and messages that were passed over as one of the limits was reached. */
  limited: number;
};

export type RealtimeStatistics = Readonly<RealtimeCounters> & {
  /** Of now. */
  readonly sockets: number;
  readonly channels: number;
  /** Those of them that asked for changes of tables. */
  readonly subscriptions: number;
};

export function makeRealtimeCounters(): RealtimeCounters {
  return {
    messagesIn: 0,
    bytesIn: 0,
    messagesOut: 0,
    bytesOut: 0,
    overwhelmed: 0,
    gaps: 0,
    refusals: 0,
    limited: 0,
  };
}
