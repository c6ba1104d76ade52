import type { ExecutionArgs, ExecutionResult } from "grafast/graphql";
import { makeServer, type Server } from "graphql-ws";
import { refusalOf } from "../../documents/graphql-refusal.ts";
import { errorsOf, toGraphQLError } from "../../operations/errors.ts";
import type { PreparedOperation } from "../../operations/operation.ts";
import type { OperationResult } from "../../operations/run-compiled.ts";
import type { SentOperation, SocketChannel, SocketConnection } from "./connection.ts";

/** https://github.com/enisdenjo/graphql-ws/blob/master/PROTOCOL.md */
export const TRANSPORT_WS = "graphql-transport-ws";

export type TransportWs = Server<SocketConnection>;

export function makeTransportWs({ initTimeoutMs }: { initTimeoutMs: number }): TransportWs {
  return makeServer<Record<string, unknown>, SocketConnection>({
    connectionInitWaitTimeout: initTimeoutMs,
    onConnect: async ({ extra, connectionParams }) => {
      await extra.identify(connectionParams);
      return true;
    },
    onSubscribe: async ({ extra }, id, payload) => {
      try {
        // The library knows one operation of an id, and would lose another one that still runs.
        if (extra.isInUse(id))
          throw refusalOf("The id is that of an operation that has not ended.", "VALIDATION_ERROR");
        return await extra.prepare(payload, { id, payload, message: extra.message });
      } catch (error) {
        return errorsOf(error);
      }
    },
    execute: runOperation,
    subscribe: runOperation,
    onNext: ({ extra }, _id, _payload, _args, result) => extra.toPayload(result as OperationResult),
    onError: ({ extra }, _id, _payload, errors) => extra.explainAll(errors),
    onComplete: ({ extra }, _id, payload) => extra.ended(payload),
  });
}

/** Receives the arguments from `onSubscribe`. A rejection would close the socket with all its operations. */
async function runOperation(args: ExecutionArgs) {
  try {
    const outcome = await (args as PreparedOperation).run();
    // `onNext` reads results of either form.
    return outcome.kind === "result"
      ? (outcome.result as ExecutionResult)
      : (outcome.results as AsyncGenerator<ExecutionResult>);
  } catch (error) {
    return { errors: [toGraphQLError(error)] };
  }
}

/** https://github.com/apollographql/subscriptions-transport-ws/blob/master/PROTOCOL.md, the older protocol of the same purpose. */
export const SUBSCRIPTIONS_TRANSPORT_WS = "graphql-ws";

const KEEP_ALIVE = JSON.stringify({ type: "ka" });

type LegacyMessage = { readonly type?: unknown; readonly id?: unknown; readonly payload?: unknown };

/** One socket that speaks the older protocol. */
export class SubscriptionsTransportWs {
  readonly #connection: SocketConnection;
  readonly #channel: SocketChannel;
  /** Functions that end the open operations, by id. */
  readonly #open = new Map<string, () => void>();
  /** Null until `connection_init`. */
  #introduction: Promise<void> | null = null;
  #isAcknowledged = false;
  readonly #initTimer: NodeJS.Timeout;

  constructor(connection: SocketConnection, channel: SocketChannel, { initTimeoutMs }: { initTimeoutMs: number }) {
    this.#connection = connection;
    this.#channel = channel;
    this.#initTimer = setTimeout(() => channel.close(4408, "Connection initialisation timeout"), initTimeoutMs).unref();
  }

  /** Null until the client is acknowledged. */
  keepAliveMessage(): string | null {
    return this.#isAcknowledged ? KEEP_ALIVE : null;
  }

  async handleMessage(text: string): Promise<void> {
    const message = parseMessage(text);
    switch (message?.type) {
      case "connection_init":
        return this.#introduce(message.payload);
      case "start":
        return this.#start(message, text);
      case "stop":
        return this.#stop(String(message.id));
      case "connection_terminate":
        return this.#channel.close(1000, "Terminated");
      default:
        this.#channel.close(4400, "Invalid message received");
    }
  }

  disconnected(): void {
    clearTimeout(this.#initTimer);
    for (const stop of [...this.#open.values()]) stop();
  }

  async #introduce(parameters: unknown): Promise<void> {
    if (this.#introduction) return this.#channel.close(4429, "Too many initialisation requests");
    clearTimeout(this.#initTimer);
    this.#introduction = this.#acknowledge(parameters);
    // Operations may follow at once; reading is paused until the client is authenticated.
    this.#channel.pause();
    await this.#introduction.finally(() => this.#channel.resume());
  }

  async #acknowledge(parameters: unknown): Promise<void> {
    await this.#connection.identify(parameters);
    this.#isAcknowledged = true;
    await this.#say({ type: "connection_ack" });
    await this.#channel.send(KEEP_ALIVE);
  }

  /** This protocol's own client does not wait for the acknowledgement. */
  async #start({ id, payload }: LegacyMessage, text: string): Promise<void> {
    if (!this.#introduction) return this.#channel.close(4401, "Unauthorized");
    if (typeof id !== "string" || id === "") return this.#channel.close(4400, "Invalid message received");
    this.#stop(id);
    const stopper = new AbortController();
    const stop = () => stopper.abort();
    this.#open.set(id, stop);
    try {
      await this.#introduction;
      if (!stopper.signal.aborted) await this.#run(stop, { id, payload, message: text }, stopper.signal);
    } catch (error) {
      const [payload] = this.#connection.explainAll([error]);
      if (!stopper.signal.aborted) await this.#say({ type: "error", id, payload });
    } finally {
      if (this.#open.get(id) === stop) this.#open.delete(id);
      this.#connection.ended(stop);
    }
  }

  async #run(key: object, sent: SentOperation, stopped: AbortSignal): Promise<void> {
    const { id } = sent;
    const operation = await this.#connection.prepare(key, sent);
    const outcome = await operation.run();
    if (outcome.kind === "result") {
      if (!stopped.aborted) await this.#say({ type: "data", id, payload: this.#connection.toPayload(outcome.result) });
    } else {
      const { results } = outcome;
      stopped.addEventListener("abort", () => void results.return());
      if (stopped.aborted) await results.return();
      for await (const result of results) {
        await this.#say({ type: "data", id, payload: this.#connection.toPayload(result) });
      }
    }
    if (!stopped.aborted) await this.#say({ type: "complete", id });
  }

  #stop(id: string): void {
    const stop = this.#open.get(id);
    this.#open.delete(id);
    stop?.();
  }

  #say(message: object): Promise<void> {
    return this.#channel.send(this.#connection.withData(JSON.stringify(message)));
  }
}

function parseMessage(text: string): LegacyMessage | null {
  try {
    const message: unknown = JSON.parse(text);
    return typeof message === "object" ? message : null;
  } catch {
    return null;
  }
}
