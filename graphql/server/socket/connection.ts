import { randomUUID } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import type { DocumentNode, FormattedExecutionResult, GraphQLFormattedError } from "grafast/graphql";
import {
  type AuthenticationResult,
  type Authenticator,
  type Credentials,
  callerKey,
  hasExpired,
} from "#accounts/identity";
import { type CsrfProtection, readSessionCookie } from "#http";
import type { SocketMemory } from "#http/sockets";
import { type ByteQuota, heapSize, Reservation, SharedBytes, type Shortage } from "#runtime";
import { parseJsonExactly } from "#runtime/json";
import { refusalOf } from "../../documents/graphql-refusal.ts";
import { type ExplainError, errorsOf, responseExtensions } from "../../operations/errors.ts";
import type {
  OperationOutcome,
  OperationRequestInfo,
  OperationStages,
  PreparedOperation,
} from "../../operations/operation.ts";
import { prepareOperation } from "../../operations/prepare-operation.ts";
import type { OperationResult } from "../../operations/run-compiled.ts";
import { isRevoked, readConnectionCredentials, readCredentials } from "../request/authenticate.ts";
import { parseParameters } from "../request/parse.ts";
import type { FindDocument } from "../request/persisted-operations.ts";

export type GraphqlSocketDependencies = {
  readonly path: string;
  readonly authenticator: () => Authenticator;
  readonly csrf: CsrfProtection;
  readonly findDocument: FindDocument;
  readonly stages: OperationStages;
  readonly explain: ExplainError;
  /** The maximum number of open operations per socket. */
  readonly maxOperations: number;
  readonly memory: SocketMemory;
  /** The documents of open operations on all sockets. */
  readonly openDocuments: SharedBytes<DocumentNode>;
};

/** The socket as a protocol uses it. */
export type SocketChannel = {
  /** Resolves when the message was sent, so that a slow reader slows down the sender. */
  send(text: string): Promise<void>;
  close(code: number, reason: string): void;
  /** Stops reading until `resume`. */
  pause(): void;
  resume(): void;
};

/** The upgrade request. */
export type SocketRequest = {
  readonly id: string;
  readonly rawQuery: string;
  readonly headers: IncomingHttpHeaders;
  readonly address: string | null;
};

/** The memory of an operation besides its message. */
const BASE_OPERATION_BYTES = 4_096;
/** The maximum delay of a timer. */
const MAX_TIMER_MS = 2 ** 31 - 1;
/** The interval of checks for expired tokens, within the tolerance for clock differences. */
const EXPIRY_CHECK_MS = 500;

/** An operation as its message has it. */
export type SentOperation = { readonly id: string; readonly payload: unknown; readonly message: string };

/** An operation from its message to its end, and the memory that it reserves. */
type OpenOperation = {
  readonly id: string;
  readonly sent: Reservation;
  hasEnded: boolean;
  /** Null until a subscription has begun, and for other operations. */
  results: Exclude<OperationOutcome, { kind: "result" }>["results"] | null;
  /** Null until the document is parsed. */
  document: { readonly node: DocumentNode; readonly bytes: number } | null;
};

/** The client of a socket with its open operations. */
export class SocketConnection {
  readonly #services: GraphqlSocketDependencies;
  readonly #channel: SocketChannel;
  readonly #request: SocketRequest;
  readonly #left = new AbortController();
  /** Queries and mutations; other operations are subscriptions. */
  readonly #underway = new Map<object, PreparedOperation>();
  readonly #open = new Map<object, OpenOperation>();
  readonly #quota: ByteQuota;
  readonly #documentQuota: ByteQuota;
  readonly #documents: SharedBytes<DocumentNode>;
  readonly #parameters: Reservation;
  #authentication: AuthenticationResult;
  #count = 0;
  #expiry: NodeJS.Timeout | undefined;
  /** The text of the current message. */
  message = "";
  /** The JSON text of results, by the placeholder that stands for each in messages that are being written. */
  readonly #texts = new Map<string, string>();
  #isIdentified = false;
  #isLeaving = false;

  constructor(services: GraphqlSocketDependencies, channel: SocketChannel, request: SocketRequest) {
    this.#services = services;
    this.#channel = channel;
    this.#request = request;
    this.#quota = services.memory.retainedOfSocket();
    this.#documentQuota = services.memory.documentsOfSocket();
    this.#documents = new SharedBytes(this.#documentQuota, services.openDocuments);
    this.#parameters = new Reservation(this.#quota);
    this.#authentication = { caller: services.authenticator().anonymous, rejection: null };
  }

  /** True if the client is authenticated, possibly as anonymous. */
  get isIdentified(): boolean {
    return this.#isIdentified;
  }

  /** Identifies the caller: large messages of one caller are processed one at a time across sockets. */
  get callerKey(): string {
    return callerKey(this.#authentication.caller.claims, () => this.#request.address);
  }

  get openOperations(): number {
    return this.#open.size;
  }

  /** Authenticates by the token in `connection_init`, or else by the upgrade request. */
  async identify(parameters: unknown): Promise<void> {
    const shortage = this.#parameters.resize(heapSize(parameters));
    if (shortage === "own") return this.#channel.close(4400, "The connection's parameters take too much memory");
    if (shortage) return this.#channel.close(1013, "The service holds too much for its clients: try again later");
    const credentials = readConnectionCredentials(parameters) ?? this.#shownAtFirst();
    this.#authentication = await this.#services.authenticator().authenticateOrAnonymous(credentials);
    this.#isIdentified = true;
    const { expiresAt } = this.#authentication.caller;
    if (expiresAt !== null && !this.#left.signal.aborted) this.#closeAfter(expiresAt);
  }

  /** Closes the socket if its credential is no longer valid, or has other claims now: a new connection has those. */
  async recheckAccount(): Promise<void> {
    const { caller } = this.#authentication;
    if (await isRevoked(this.#services.authenticator(), caller)) this.#channel.close(4403, "Token expired");
  }

  /**
   * Throws if the operation is rejected. `key` stands for it until `ended`: a client may use its id for another one while it still runs.
   * `message` is the text of the whole message.
   */
  async prepare(key: object, { id, payload, message }: SentOperation): Promise<PreparedOperation> {
    const { findDocument, stages, maxOperations } = this.#services;
    this.#left.signal.throwIfAborted();
    if (this.#isLeaving) throw refusalOf("The service is shutting down: connect again.", "SERVICE_UNAVAILABLE");
    if (this.#open.size >= maxOperations) {
      throw refusalOf(`This connection has ${maxOperations} operations open already.`, "RATE_LIMITED");
    }
    const open: OpenOperation = {
      id,
      sent: new Reservation(this.#quota),
      hasEnded: false,
      results: null,
      document: null,
    };
    this.#open.set(key, open);
    try {
      refuseShortage(open.sent.resize(BASE_OPERATION_BYTES + heapSize([id, payload])), this.#quota);
      const sent = parseParameters(payload, () => (parseJsonExactly(message) as { readonly payload: unknown }).payload);
      const operation = await prepareOperation(
        stages,
        { ...sent, query: await findDocument(sent) },
        this.#circumstances(),
      );
      if (open.hasEnded) {
        operation.release();
        throw this.#left.signal.reason;
      }
      this.#holdDocument(open, operation);
      if (operation.kind !== "subscription") this.#underway.set(key, operation);
      return { ...operation, run: () => runUntilEnd(operation, open) };
    } catch (error) {
      this.ended(key);
      throw error;
    }
  }

  /** True if an operation with this id has not ended, even if its client has completed it. */
  isInUse(id: string): boolean {
    return this.#open.values().some((open) => open.id === id);
  }

  /** Called when an operation has ended for any reason. */
  ended(key: object): void {
    const open = this.#open.get(key);
    if (open) this.#release(open);
    this.#open.delete(key);
    this.#underway.get(key)?.release();
    this.#underway.delete(key);
    if (this.#isLeaving) this.#closeWhenIdle();
  }

  /** Converts errors to their format in responses. */
  explainAll(errors: readonly unknown[]): GraphQLFormattedError[] {
    const audience = { authentication: this.#authentication, requestId: this.#request.id };
    return errors.flatMap(errorsOf).map((error) => this.#services.explain(error, audience));
  }

  toPayload({ data, errors, extensions: own }: OperationResult): FormattedExecutionResult {
    const extensions = responseExtensions(this.#authentication, own);
    return {
      ...(errors && { errors: this.explainAll(errors) }),
      ...(data !== undefined && { data: this.#standInFor(data) as Record<string, unknown> | null }),
      ...(extensions && { extensions }),
    };
  }

  /** The message with the data of its payload. */
  withData(message: string): string {
    for (const [name, text] of this.#texts) {
      const at = message.indexOf(`"${name}"`);
      if (at < 0) continue;
      this.#texts.delete(name);
      return message.slice(0, at) + text + message.slice(at + name.length + 2);
    }
    return message;
  }

  /** Returns a placeholder for data that is JSON already: parsing it only to make it a part of a message would hold the event loop. */
  #standInFor(data: NonNullable<OperationResult["data"]> | null): unknown {
    if (typeof data !== "string" && !Buffer.isBuffer(data)) return data;
    const name = randomUUID();
    this.#texts.set(name, String(data));
    return name;
  }

  /** Finishes open queries and mutations, then closes; clients resubscribe elsewhere. */
  leave(): void {
    this.#isLeaving = true;
    this.#closeWhenIdle();
  }

  /** The socket has closed: releases everything. */
  disconnected(): void {
    clearTimeout(this.#expiry);
    this.#left.abort();
    this.#texts.clear();
    this.#parameters.release();
    for (const open of this.#open.values()) this.#release(open);
    this.#open.clear();
    for (const operation of this.#underway.values()) operation.release();
    this.#underway.clear();
  }

  #holdDocument(open: OpenOperation, { document, documentBytes: bytes }: PreparedOperation): void {
    refuseShortage(this.#documents.shortageOf(document, bytes), this.#documentQuota);
    this.#documents.hold(document, bytes);
    open.document = { node: document, bytes };
  }

  #release(open: OpenOperation): void {
    const { sent, document, results } = open;
    open.hasEnded = true;
    void results?.return();
    sent.release();
    if (document) this.#documents.release(document.node, document.bytes);
  }

  /** The credentials of the upgrade request; a browser sends its cookie for any page. */
  #shownAtFirst(): Credentials {
    const { headers } = this.#request;
    const session = this.#services.csrf.isAllowedOrigin(headers) ? readSessionCookie(headers) : null;
    return { ...readCredentials(this.#request), session };
  }

  #circumstances(): OperationRequestInfo {
    return {
      authentication: this.#authentication,
      requestId: `${this.#request.id}/${++this.#count}`,
      method: "GET",
      path: this.#services.path,
      headers: this.#request.headers,
      address: () => this.#request.address,
      signal: this.#left.signal,
    };
  }

  #closeWhenIdle(): void {
    if (this.#underway.size === 0) this.#channel.close(1001, "Going away");
  }

  /** Closes the socket when the token expires. */
  #closeAfter(expiresAt: number): void {
    const rest = expiresAt * 1000 - Date.now();
    const wait = Math.min(Math.max(rest, EXPIRY_CHECK_MS), MAX_TIMER_MS);
    clearTimeout(this.#expiry);
    this.#expiry = setTimeout(() => {
      if (hasExpired(expiresAt)) this.#channel.close(4403, "Token expired");
      else this.#closeAfter(expiresAt);
    }, wait).unref();
  }
}

/** Ends results that begin after their operation has ended, of which the protocol does not know any more. */
async function runUntilEnd(operation: PreparedOperation, open: OpenOperation): Promise<OperationOutcome> {
  const outcome = await operation.run();
  if (outcome.kind === "result") return outcome;
  open.results = outcome.results;
  if (open.hasEnded) await outcome.results.return();
  return outcome;
}

function refuseShortage(shortage: Shortage | null, { limit }: ByteQuota): void {
  if (shortage === "own") {
    throw refusalOf(`The operations of a connection can take about ${limit} bytes: end others first.`, "RATE_LIMITED");
  }
  if (shortage === "shared") {
    throw refusalOf("The service holds too much for its clients: try again later.", "SERVICE_UNAVAILABLE");
  }
}
