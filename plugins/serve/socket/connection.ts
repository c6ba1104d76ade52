import type { IncomingHttpHeaders } from "node:http";
import { type FormattedExecutionResult, GraphQLError, type GraphQLFormattedError } from "postgraphile/graphql";
import type { Asker, Callers } from "../../../engine/caller/caller.ts";
import { credentialsIn, credentialsOf } from "../credentials.ts";
import { Refusal } from "../documents.ts";
import { asGraphQLError, type Explain } from "../errors.ts";
import type { Occasion, Operation, Prepare, Result } from "../operation.ts";
import { parseParameters } from "../parse-request.ts";
import type { FindDocument } from "../persisted-operations.ts";

export type ConnectionServices = {
  readonly path: string;
  readonly callers: () => Callers;
  readonly findDocument: FindDocument;
  readonly prepare: Prepare;
  readonly explain: Explain;
  /** How many operations one socket may have open. */
  readonly mostOperations: number;
};

/** What a protocol needs of its socket. */
export type Channel = {
  /** Resolves when it is on its way: so who reads slowly is written to slowly. */
  send(text: string): Promise<void>;
  close(code: number, reason: string): void;
};

/** The request for the socket. */
export type SocketRequest = {
  readonly id: string;
  readonly rawQuery: string;
  readonly headers: IncomingHttpHeaders;
};

/** The longest that a timer can wait. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Whoever is at the other end of a socket, and what they have going on. */
export class Connection {
  readonly #services: ConnectionServices;
  readonly #channel: Channel;
  readonly #request: SocketRequest;
  readonly #left = new AbortController();
  /** Operations that end by themselves; the rest are subscriptions. */
  readonly #underway = new Set<string>();
  readonly #open = new Set<string>();
  #asker: Asker;
  #count = 0;
  #expiry: NodeJS.Timeout | undefined;
  #isLeaving = false;

  constructor(services: ConnectionServices, channel: Channel, request: SocketRequest) {
    this.#services = services;
    this.#channel = channel;
    this.#request = request;
    this.#asker = { caller: services.callers().anonymous, tokenHasExpired: false };
  }

  get openOperations(): number {
    return this.#open.size;
  }

  /** By the token that the client gave at first, or else the one in the request for the socket. */
  async identify(parameters: unknown): Promise<void> {
    const credentials = credentialsIn(parameters) ?? credentialsOf(this.#request);
    this.#asker = await this.#services.callers().identifyOrAnonymous(credentials);
    const { expiresAt } = this.#asker.caller;
    if (expiresAt !== null) this.#closeAt(expiresAt * 1000);
  }

  /** Closes when the account behind the token was disabled or deleted, or has changed, since. */
  async look(): Promise<void> {
    const objection = await this.#services.callers().objectionTo(this.#asker.caller.claims);
    if (objection) this.#channel.close(4403, "Token expired");
  }

  /** Refuses by throwing. */
  async prepare(id: string, payload: unknown): Promise<Operation> {
    const { findDocument, prepare, mostOperations } = this.#services;
    if (this.#isLeaving) throw refusal("The service is shutting down: connect again.", "SERVICE_UNAVAILABLE");
    if (this.#open.size >= mostOperations) {
      throw refusal(`This connection has ${mostOperations} operations open already.`, "RATE_LIMITED");
    }
    this.#open.add(id);
    try {
      const sent = parseParameters(payload);
      const operation = prepare({ ...sent, query: await findDocument(sent) }, this.#occasion());
      if (operation.kind !== "subscription") this.#underway.add(id);
      return operation;
    } catch (error) {
      this.ended(id);
      throw error;
    }
  }

  /** To be called when an operation is over, however it ended. */
  ended(id: string): void {
    this.#open.delete(id);
    this.#underway.delete(id);
    if (this.#isLeaving) this.#closeWhenIdle();
  }

  /** As it goes over the wire. */
  explainAll(errors: readonly unknown[]): GraphQLFormattedError[] {
    const audience = { asker: this.#asker, requestId: this.#request.id };
    return errors
      .flatMap((error) => (error instanceof Refusal ? error.errors : [asGraphQLError(error)]))
      .map((error) => this.#services.explain(error, audience));
  }

  toPayload({ data, errors }: Result): FormattedExecutionResult {
    const explained = errors ? { errors: this.explainAll(errors) } : {};
    return data === undefined ? explained : { ...explained, data: data as Record<string, unknown> | null };
  }

  /** Lets what is under way end, then closes; subscriptions go on elsewhere. */
  leave(): void {
    this.#isLeaving = true;
    this.#closeWhenIdle();
  }

  /** The socket is gone: nobody waits for anything any more. */
  gone(): void {
    clearTimeout(this.#expiry);
    this.#left.abort();
    this.#open.clear();
    this.#underway.clear();
  }

  #occasion(): Occasion {
    return {
      asker: this.#asker,
      requestId: `${this.#request.id}/${++this.#count}`,
      method: "GET",
      path: this.#services.path,
      headers: this.#request.headers,
      signal: this.#left.signal,
    };
  }

  #closeWhenIdle(): void {
    if (this.#underway.size === 0) this.#channel.close(1001, "Going away");
  }

  #closeAt(moment: number): void {
    const rest = moment - Date.now();
    const wait = Math.min(Math.max(rest, 0), LONGEST_TIMER_MS);
    clearTimeout(this.#expiry);
    this.#expiry = setTimeout(() => {
      if (Date.now() < moment) this.#closeAt(moment);
      else this.#channel.close(4403, "Token expired");
    }, wait).unref();
  }
}

function refusal(message: string, code: string): Refusal {
  return new Refusal([new GraphQLError(message, { extensions: { code } })]);
}
