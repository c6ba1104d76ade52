import { once } from "node:events";
import jwt from "jsonwebtoken";
import { WebSocket } from "ws";
import { SECRET } from "../secret.ts";
import { Inbox } from "./inbox.ts";

// biome-ignore lint/suspicious/noExplicitAny: the server's messages have many forms.
export type Payload = any;
export type Message = {
  readonly joinRef: string | null;
  readonly ref: string | null;
  readonly topic: string;
  readonly event: string;
  readonly payload: Payload;
};

/** A client that sends raw protocol messages. */
export class RawClient extends Inbox<Message> {
  readonly socket: WebSocket;
  readonly binary = new Inbox<Buffer>();
  readonly #version: "1.0.0" | "2.0.0";
  #ref = 0;

  constructor(url: string, { version = "2.0.0" as "1.0.0" | "2.0.0", key = jwt.sign({ role: "anon" }, SECRET) } = {}) {
    super();
    this.#version = version;
    this.socket = new WebSocket(`${url.replace("http", "ws")}/realtime/v1/websocket?apikey=${key}&vsn=${version}`);
    this.socket.on("message", (data: Buffer, isBinary: boolean) => {
      if (isBinary) this.binary.put(data);
      else this.put(this.#read(data.toString()));
    });
  }

  async opened(): Promise<this> {
    await once(this.socket, "open");
    return this;
  }

  /** Returns the ref. */
  say(topic: string, event: string, payload: object, { joinRef = null as string | null } = {}): string {
    const ref = String(++this.#ref);
    const join = event === "phx_join" ? ref : joinRef;
    const message =
      this.#version === "2.0.0" ? [join, ref, topic, event, payload] : { topic, event, payload, ref, join_ref: join };
    this.socket.send(JSON.stringify(message));
    return ref;
  }

  reply(ref: string): Promise<Message> {
    return this.until((message) => message.event === "phx_reply" && message.ref === ref);
  }

  /** Joins again where a busy machine has not opened the change stream in time, as the reply says. */
  async join(topic: string, config: object = {}, more: object = {}): Promise<Message> {
    let reply: Message;
    do reply = await this.reply(this.say(topic, "phx_join", { config, ...more }));
    while (/^PostgresChangesSubscribeTimeout: /.test(reply.payload.response?.reason));
    return reply;
  }

  async close(): Promise<void> {
    this.socket.close();
    if (this.socket.readyState !== WebSocket.CLOSED) await once(this.socket, "close");
  }

  #read(text: string): Message {
    const written = JSON.parse(text);
    if (this.#version === "1.0.0") return { joinRef: null, ...written };
    const [joinRef, ref, topic, event, payload] = written;
    return { joinRef, ref, topic, event, payload };
  }
}
