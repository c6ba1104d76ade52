import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { type Backend, BackendPool, type Login, LostBackendError } from "./backends.ts";
import {
  MessageSplitter,
  makeError,
  makeInt32,
  makeMessage,
  makeQuery,
  makeReadyForQuery,
  readStrings,
  SYNC,
  typeOf,
} from "./messages.ts";

const SSL_REQUEST = (1234 << 16) | 5679;
const GSS_REQUEST = (1234 << 16) | 5680;
const CANCEL_REQUEST = (1234 << 16) | 5678;

/** Messages that a COPY from the client consists of: they belong to the statement that runs. */
const COPY_MESSAGES = "dcf";
/** Messages after which the ones so far are sent to a backend. */
const LAST_MESSAGES = "ESQH";

export type HostileRouter = {
  readonly port: number;
  /** The statements that ran outside of a transaction block, each on a backend of its own. */
  statements(): number;
  /** The transaction blocks. */
  transactions(): number;
  close(): Promise<void>;
};

/** A statement that some router in the field refuses, or that would not work behind it. */
function refusalOf(message: Buffer, isInTransaction: boolean): Buffer | null {
  const type = typeOf(message);
  if (type !== "P" && type !== "Q") return null;
  const [first = "", second = ""] = readStrings(message, 5);
  if (type === "P" && first !== "") return refuse("prepared statements with a name");
  const text = type === "P" ? second : first;
  if (/^\s*listen\b/i.test(text)) return refuse("LISTEN");
  if (/\bpg_create_(logical|physical)_replication_slot\b/i.test(text)) return refuse("permanent replication slots");
  const settings = text.match(/\bset_config\s*\(/gi)?.length ?? 0;
  if (settings > 1 && !isInTransaction) return refuse("several functions that change settings in one SELECT");
  return null;
}

function refuse(what: string): Buffer {
  return makeError({ code: "0A000", text: `The router does not support ${what}` });
}

/**
 * A router with the restrictions of all that we know: each statement outside of a transaction block, also of one
 * pipeline, gets another backend without the settings of the last; no named statements, LISTEN, replication, or SELECT with
 * several set_config outside of a transaction block; the client's startup parameters are ignored.
 */
export async function startHostileRouter(postgres: { readonly path: string }): Promise<HostileRouter> {
  const router = new Router(postgres.path);
  // Else the second write of a response waits until the client has acknowledged the first.
  const server = createServer({ noDelay: true }, (socket) => new Client(socket, router));
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    port: (server.address() as AddressInfo).port,
    statements: () => router.statements,
    transactions: () => router.transactions,
    async close() {
      server.close();
      router.close();
      await once(server, "close");
    },
  };
}

class Router {
  statements = 0;
  transactions = 0;
  readonly clients = new Map<number, Client>();
  readonly #path: string;
  readonly #pools = new Map<string, BackendPool>();
  #lastId = 0;

  constructor(path: string) {
    this.#path = path;
  }

  poolOf(login: Login): BackendPool {
    const key = JSON.stringify(login);
    const pool = this.#pools.get(key) ?? new BackendPool(this.#path, login);
    this.#pools.set(key, pool);
    return pool;
  }

  add(client: Client): number {
    this.clients.set(++this.#lastId, client);
    return this.#lastId;
  }

  close(): void {
    for (const client of this.clients.values()) client.destroy();
    for (const pool of this.#pools.values()) pool.close();
  }
}

class Client {
  readonly #socket: Socket;
  readonly #router: Router;
  readonly #splitter = new MessageSplitter({ startsWithType: false });
  #pool: BackendPool | null = null;
  #id = 0;
  /** The messages that wait for their turn. */
  readonly #inbox: Buffer[] = [];
  #isWorking = false;
  /** The backend of the transaction block or of the statement that runs. */
  #backend: Backend | null = null;
  #last: Backend | null = null;
  /** A cancel request that must not hit the next client's statement. */
  #cancelling: Promise<void> | null = null;
  #status = "I";
  /** True if messages are skipped until Sync, because of an error. */
  #isSkipping = false;

  constructor(socket: Socket, router: Router) {
    this.#socket = socket;
    this.#router = router;
    socket.on("data", (chunk) => {
      for (const message of this.#splitter.split(chunk)) this.#receive(message);
    });
    socket.on("error", () => {});
    socket.on("drain", () => this.#backend?.resume());
    socket.on("close", () => this.#leave());
  }

  destroy(): void {
    this.#socket.destroy();
  }

  async cancel(): Promise<void> {
    this.#cancelling = this.#backend?.cancel() ?? null;
    await this.#cancelling;
  }

  #receive(message: Buffer): void {
    if (this.#pool === null) void this.#start(message);
    else if (COPY_MESSAGES.includes(typeOf(message))) this.#backend?.send(message);
    else {
      this.#inbox.push(message);
      void this.#work();
    }
  }

  async #start(message: Buffer): Promise<void> {
    const code = message.readInt32BE(4);
    if (code === SSL_REQUEST || code === GSS_REQUEST) {
      this.#socket.write("N");
      return;
    }
    if (code === CANCEL_REQUEST) {
      await this.#router.clients.get(message.readInt32BE(8))?.cancel();
      this.#socket.end();
      return;
    }
    this.#splitter.expectTypes();
    const names = readStrings(message, 8);
    const parameters = new Map(names.flatMap((name, n) => (n % 2 === 0 ? [[name, names[n + 1] ?? ""]] : [])));
    if (parameters.has("replication")) {
      this.#socket.end(
        makeError({ severity: "FATAL", code: "0A000", text: "The router does not support replication" }),
      );
      return;
    }
    const user = parameters.get("user")!;
    this.#pool = this.#router.poolOf({ user, database: parameters.get("database") ?? user });
    await this.#welcome(this.#pool);
  }

  async #welcome(pool: BackendPool): Promise<void> {
    this.#isWorking = true;
    try {
      const backend = await pool.take(null);
      this.#id = this.#router.add(this);
      const key = makeMessage("K", makeInt32(this.#id, 0));
      this.#socket.write(
        Buffer.concat([makeMessage("R", makeInt32(0)), ...backend.parameters, key, makeReadyForQuery("I")]),
      );
      await pool.giveBack(backend);
      this.#isWorking = false;
      await this.#work();
    } catch (error) {
      this.#fail(error);
    }
  }

  async #work(): Promise<void> {
    if (this.#isWorking) return;
    this.#isWorking = true;
    try {
      for (let unit = this.#nextUnit(); unit.length > 0; unit = this.#nextUnit()) await this.#process(unit);
      this.#isWorking = false;
    } catch (error) {
      this.#fail(error);
    }
  }

  /** The messages up to the next statement's end, or one Sync. */
  #nextUnit(): Buffer[] {
    const end = this.#inbox.findIndex((message) => LAST_MESSAGES.includes(typeOf(message)) || typeOf(message) === "X");
    return this.#inbox.splice(0, end + 1);
  }

  async #process(unit: readonly Buffer[]): Promise<void> {
    const type = typeOf(unit.at(-1)!);
    if (type === "X") this.#socket.end();
    else if (type === "S") {
      if (unit.length > 1 && !this.#isSkipping) await this.#run(unit.slice(0, -1), [SYNC]);
      this.#isSkipping = false;
      this.#write(makeReadyForQuery(this.#status));
    } else if (type === "Q") {
      await this.#run(unit, []);
      this.#isSkipping = false;
      this.#write(makeReadyForQuery(this.#status));
    } else if (!this.#isSkipping) await this.#run(unit, [SYNC]);
  }

  async #run(unit: readonly Buffer[], end: readonly Buffer[]): Promise<void> {
    const isInTransaction = this.#status !== "I";
    for (const message of unit) {
      const refusal = refusalOf(message, isInTransaction);
      if (!refusal) continue;
      this.#isSkipping = true;
      if (isInTransaction) this.#status = await this.#backend!.run([makeQuery("select 1/0")]);
      this.#write(refusal);
      return;
    }
    const backend = await this.#takeBackend();
    this.#status = await backend.run([...unit, ...end], (message) => this.#deliver(message, backend));
    if (!isInTransaction && this.#status !== "I") this.#router.transactions++;
    if (!isInTransaction && this.#status === "I") this.#router.statements++;
    if (this.#status === "I") await this.#release(backend);
  }

  async #takeBackend(): Promise<Backend> {
    if (this.#backend) return this.#backend;
    const backend = await this.#pool!.take(this.#last);
    if (this.#socket.destroyed) {
      void this.#pool!.giveBack(backend);
      throw new Error("The client is gone");
    }
    this.#backend = backend;
    return backend;
  }

  async #release(backend: Backend): Promise<void> {
    this.#backend = null;
    this.#last = backend;
    if (this.#cancelling) await this.#cancelling;
    this.#cancelling = null;
    backend.resume();
    void this.#pool!.giveBack(backend);
  }

  #deliver(message: Buffer, backend: Backend): void {
    if (typeOf(message) === "E") this.#isSkipping = true;
    if (!this.#write(message)) backend.pause();
  }

  #write(message: Buffer): boolean {
    return this.#socket.writableEnded || this.#socket.destroyed || this.#socket.write(message);
  }

  /** Tells the client why its backend was lost. */
  #fail(error: unknown): void {
    const response = error instanceof LostBackendError ? error.response : null;
    if (response) this.#socket.end(response);
    else this.#socket.destroy();
  }

  /** Removes the client's backend, which rolls back an open transaction. */
  #leave(): void {
    this.#router.clients.delete(this.#id);
    if (this.#backend) this.#pool!.remove(this.#backend);
    this.#backend = null;
    this.#inbox.length = 0;
  }
}
