import { randomUUID } from "node:crypto";
import type { JSONRPCMessage } from "@modelcontextprotocol/server";
import type { PeerWorkers } from "#runtime/concurrency";
import { isJsonObject } from "#runtime/json";

/** The answer of a client to a request of the server. */
type ClientAnswer = { readonly id: string; readonly [member: string]: unknown };

export function isClientAnswer(message: unknown): message is ClientAnswer {
  return isJsonObject(message) && message.method === undefined && typeof message.id === "string";
}

type SentAnswer = { readonly sessionId: string; readonly answer: ClientAnswer };

type AskingCall = {
  readonly session: { readonly id: string };
  /** The caller who is asked. */
  readonly owner: string;
  readonly receive: (answer: JSONRPCMessage) => void;
};

/** The limit of calls that wait for an answer: each one holds a connection, and waits for a person. */
const MAX_ASKING_CALLS = 20;

/**
 * Sends requests to clients of 2025-11-25. They are sent in the stream of a call, and answered by a separate request, which
 * may arrive at another worker. The ids name the call, so that each worker knows whether it waits for the answer.
 */
export class ClientRequests {
  readonly #calls = new Map<string, AskingCall>();
  readonly #peers: PeerWorkers;

  constructor(peers: PeerWorkers) {
    this.#peers = peers;
    peers.subscribe("agents", (content) => void this.#receive(content as SentAnswer));
  }

  /** Gives the requests of a call their own ids, until the call is closed. */
  open(call: AskingCall): CallRequests {
    const name = randomUUID();
    return {
      toClientId: (id) => {
        if (!this.#calls.has(name)) this.#add(name, call);
        return `${name}:${id}`;
      },
      close: () => void this.#calls.delete(name),
    };
  }

  /** Passes an answer on. If nobody waits for it any more, it is dropped. */
  answer(sessionId: string, answer: ClientAnswer): void {
    // Numbers of many digits are objects, which cannot be sent to another process.
    const sent: SentAnswer = { sessionId, answer: JSON.parse(JSON.stringify(answer)) };
    if (!this.#receive(sent)) void this.#peers.publish("agents", sent);
  }

  #add(name: string, call: AskingCall): void {
    const open = this.#calls.values().filter(({ owner }) => owner === call.owner);
    if (open.toArray().length >= MAX_ASKING_CALLS) {
      throw new Error(`${MAX_ASKING_CALLS} calls of this user wait for answers already. Answer those first.`);
    }
    this.#calls.set(name, call);
  }

  #receive({ sessionId, answer }: SentAnswer): boolean {
    const [name = "", id] = answer.id.split(":");
    const call = this.#calls.get(name);
    if (call?.session.id !== sessionId) return false;
    call.receive({ ...answer, id: Number(id) } as JSONRPCMessage);
    return true;
  }
}

type CallRequests = {
  /** Returns the id that the client gets for a request with this id. Throws if too many calls of the caller wait. */
  readonly toClientId: (id: string | number) => string;
  readonly close: () => void;
};
