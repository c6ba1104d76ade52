type ChannelPayload = {
  config?: { postgres_changes?: unknown[]; resume?: string };
  response?: { position?: string };
  data?: { position?: string };
  extension?: string;
  status?: string;
};
type ObjectMessage = { topic: string; event: string; payload: ChannelPayload };
type ListMessage = [joinRef: string | null, ref: string | null, topic: string, event: string, payload: ChannelPayload];

/**
 * Wraps the browser's WebSocket, so that supabase-js misses no change when a connection is lost:
 * `createClient(url, key, { realtime: { transport: resuming(WebSocket) } })`. It remembers the position of each channel, and sends it
 * when the channel is joined again. The server reports a position that is no longer available.
 */
export function resuming(Socket: typeof WebSocket): typeof WebSocket {
  const positions = new Map<string, string>();

  /** Remembers a position. That of a heartbeat is valid for the channels joined on this socket, not for those that are still to be replayed. */
  const rememberPosition = ({ topic, event, payload }: ObjectMessage, joined: Set<string>): void => {
    const position = payload.data?.position ?? payload.response?.position;
    const isLost = payload.extension === "postgres_changes" && payload.status === "error";
    if (isLost || event === "phx_error" || event === "phx_close") {
      positions.delete(topic);
      joined.delete(topic);
    } else if (position && topic === "phoenix") for (const each of joined) positions.set(each, position);
    else if (position) {
      positions.set(topic, position);
      joined.add(topic);
    }
  };

  const withPosition = (text: string, joined: Set<string>): string => {
    const message = JSON.parse(text) as ObjectMessage | ListMessage;
    const { topic, event, payload } = toObjectMessage(message);
    const resume = positions.get(topic);
    if (event === "phx_leave") positions.delete(topic);
    if (event === "phx_leave" || event === "phx_join") joined.delete(topic);
    if (event === "phx_join" && resume !== undefined) payload.config = { ...payload.config, resume };
    return JSON.stringify(message);
  };

  return class extends Socket {
    readonly #joined = new Set<string>();

    constructor(...address: ConstructorParameters<typeof WebSocket>) {
      super(...address);
      this.addEventListener("message", ({ data }) => {
        if (typeof data === "string") rememberPosition(toObjectMessage(JSON.parse(data)), this.#joined);
      });
    }

    override send(data: Parameters<WebSocket["send"]>[0]): void {
      super.send(typeof data === "string" ? withPosition(data, this.#joined) : data);
    }
  };
}

/** Converts a message to an object: version 2.0.0 uses a list, 1.0.0 an object. */
function toObjectMessage(message: ObjectMessage | ListMessage): ObjectMessage {
  if (!Array.isArray(message)) return message;
  const [, , topic, event, payload] = message;
  return { topic, event, payload };
}
