import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { MessageSplitter, makeInt32, makeQuery, makeStartup, typeOf } from "./messages.ts";

const PROTOCOL_VERSION = 3 << 16;
const CANCEL_REQUEST = (1234 << 16) | 5678;
/** These suffice for tests that hold transactions open on all connections of two services. */
const MAX_BACKENDS = 40;
/** The pool has at least this many, so that each statement gets another one. */
const MIN_BACKENDS = 3;

export type Login = { readonly user: string; readonly database: string };

type Deliver = (message: Buffer) => void;
type Run = {
  readonly deliver: Deliver;
  readonly resolve: (status: string) => void;
  readonly reject: (cause: LostBackendError) => void;
};

export class LostBackendError extends Error {
  /** An error of Postgres that no client has received. */
  readonly response: Buffer | null;

  constructor(response: Buffer | null) {
    super("The backend was lost");
    this.response = response;
  }
}

/** A session of the router with Postgres. */
export class Backend {
  /** The settings that Postgres reported at the start, as messages. */
  readonly parameters: Buffer[] = [];
  readonly #path: string;
  readonly #socket: Socket;
  #key: Buffer = makeInt32(0, 0);
  #run: Run | null = null;
  #undelivered: Buffer | null = null;
  #isLost = false;

  private constructor(path: string) {
    this.#path = path;
    this.#socket = connect(path);
    const splitter = new MessageSplitter({ startsWithType: true });
    this.#socket.on("data", (chunk) => {
      for (const message of splitter.split(chunk)) this.#receive(message);
    });
    this.#socket.on("error", () => {});
    this.#socket.on("close", () => {
      this.#isLost = true;
      this.#run?.reject(new LostBackendError(this.#undelivered));
    });
  }

  static async open(path: string, { user, database }: Login): Promise<Backend> {
    const backend = new Backend(path);
    const startup = makeStartup(PROTOCOL_VERSION, "user", user, "database", database, Buffer.from([0]));
    await backend.run([startup], (message) => {
      if (typeOf(message) === "S") backend.parameters.push(message);
      if (typeOf(message) === "E") backend.#undelivered = message;
    });
    return backend;
  }

  get isLost(): boolean {
    return this.#isLost;
  }

  /** Delivers all responses but ReadyForQuery; resolves with its transaction status. */
  run(messages: readonly Buffer[], deliver: Deliver = () => {}): Promise<string> {
    if (this.#isLost) return Promise.reject(new LostBackendError(this.#undelivered));
    return new Promise((resolve, reject) => {
      this.#run = { deliver, resolve, reject };
      for (const message of messages) this.#socket.write(message);
    });
  }

  /** Sends more to the running statement: the data of a COPY. */
  send(message: Buffer): void {
    this.#socket.write(message);
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /** Resolves when Postgres has processed the request. */
  async cancel(): Promise<void> {
    const socket = connect(this.#path);
    socket.end(makeStartup(CANCEL_REQUEST, this.#key));
    socket.resume();
    await once(socket, "close").catch(() => {});
  }

  destroy(): void {
    this.#socket.destroy();
  }

  #receive(message: Buffer): void {
    const run = this.#run;
    const type = typeOf(message);
    if (type === "K") this.#key = Buffer.from(message.subarray(5));
    else if (type === "Z") {
      this.#run = null;
      run?.resolve(String.fromCharCode(message[5]!));
    } else if (run) run.deliver(message);
    else if (type === "E") this.#undelivered = message;
  }
}

type Waiting = { readonly resolve: (backend: Backend) => void; readonly reject: (cause: unknown) => void };

/** The sessions of one login. The one that was given back first is lent first, so a client rarely gets the same twice. */
export class BackendPool {
  readonly #path: string;
  readonly #login: Login;
  readonly #all = new Set<Backend>();
  readonly #waiting: Waiting[] = [];
  #idle: Backend[] = [];
  #opening = 0;

  constructor(path: string, login: Login) {
    this.#path = path;
    this.#login = login;
  }

  /** Lends any session but `last`, which ran the client's previous statement. */
  take(last: Backend | null): Promise<Backend> {
    this.#idle = this.#idle.filter((backend) => !backend.isLost || !this.#all.delete(backend));
    const size = this.#all.size + this.#opening;
    const index = this.#idle.findIndex((backend) => backend !== last);
    if (index >= 0 && size >= MIN_BACKENDS) return Promise.resolve(this.#idle.splice(index, 1)[0]!);
    if (size < MAX_BACKENDS) return this.#open();
    return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }));
  }

  /** The next client finds nothing that this one has set or prepared. */
  async giveBack(backend: Backend): Promise<void> {
    try {
      await backend.run([makeQuery("discard all")]);
    } catch {
      this.remove(backend);
      return;
    }
    const next = this.#waiting.shift();
    if (next) next.resolve(backend);
    else this.#idle.push(backend);
  }

  remove(backend: Backend): void {
    backend.destroy();
    this.#all.delete(backend);
    const next = this.#waiting.shift();
    if (next) this.#open().then(next.resolve, next.reject);
  }

  close(): void {
    for (const backend of this.#all) backend.destroy();
  }

  async #open(): Promise<Backend> {
    this.#opening++;
    try {
      const backend = await Backend.open(this.#path, this.#login);
      this.#all.add(backend);
      return backend;
    } finally {
      this.#opening--;
    }
  }
}
