/** Counters since the start. */
export type RealtimeCounters = {
  /** Frames from clients, and their bytes. */
  messagesIn: number;
  bytesIn: number;
  messagesOut: number;
  bytesOut: number;
  /** Sockets closed because their clients read too slowly. */
  overwhelmed: number;
  /** Channels that were notified of possibly missed changes. */
  gaps: number;
  /** Joins rejected for a reason other than a limit. */
  refusals: number;
  /** Channels closed, joins rejected and messages ignored because of a limit. */
  limited: number;
};

export type RealtimeStatistics = Readonly<RealtimeCounters> & {
  /** Sockets that are open. */
  readonly sockets: number;
  readonly channels: number;
  /** Channels with table changes. */
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
