// The only file that uses internals of pg. Checked against pg 8.23.1, which is pinned for this reason.
import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import pg from "pg";
import type { WorkReport } from "#runtime/concurrency";
import { endClient } from "../client/end-client.ts";
import { findServer, type ServerOptions } from "../client/server-finder.ts";
import { type AcceptMessage, checkMessages, MessageReader, type OnMessage } from "../client/server-messages.ts";

const READ_BUFFER_BYTES = 64 * 1024;
const CANCEL_TIMEOUT_MS = 5_000;

type PostgresSocketOptions = {
  readonly url: string;
  readonly applicationName: string;
  readonly connectTimeout: number;
  /** The work that is reported with uncaught errors of the connection; such an error closes it. */
  readonly report?: WorkReport;
};

/** An authenticated session: pg handles TLS, SCRAM and the start-up, this service handles the messages. */
export type PostgresSocket = {
  readonly processId: number;
  /** The host and port of its server. */
  readonly serverName: string;
  /** The settings that the server reported at the start. */
  readonly parameters: ReadonlyMap<string, string>;
  /** Takes over the stream from pg. `lost` is called when the connection ends for any reason. */
  listen(deliver: OnMessage, lost: (reason: Error) => void, admit?: AcceptMessage): void;
  /** Returns false as soon as the end of the connection is known. */
  isWritable(): boolean;
  write(chunks: readonly Buffer[]): void;
  pause(): void;
  resume(): void;
  /**
   * Cancels the statement that the session runs when the request arrives. Resolves when the server has processed the request,
   * rejects if that is unknown.
   */
  cancel(): Promise<void>;
  end(): Promise<void>;
  destroy(): void;
};

type ClientInternals = {
  processID: number;
  secretKey: number;
  host: string;
  port: number;
  connectionParameters: { ssl: unknown; sslnegotiation?: string };
  getStartupConf(): Record<string, string>;
};

type ConnectionInternals = pg.Connection & {
  connect(portOrPath: number | string, host?: string): void;
  requestSsl(): void;
  cancel(processId: number, secretKey: number): void;
};

export async function openPostgresSocket(options: PostgresSocketOptions): Promise<PostgresSocket> {
  const { url, connectTimeout, report } = options;
  let latest: SocketClient | null = null;
  const makeClient = (server: ServerOptions) => {
    latest = new SocketClient(server, options.applicationName);
    return latest;
  };
  const connect = () => findServer(url).connect(makeClient, connectTimeout);
  const close = (error: unknown) => {
    report?.pauseFor(error);
    latest?.connection.stream.destroy();
  };
  const { client, serverName } = await (report ? report.run(connect, close) : connect());
  const internals = client as unknown as ClientInternals;
  const stream: Duplex = client.connection.stream;
  return {
    processId: internals.processID,
    serverName,
    parameters: client.parameters,
    listen(deliver, whenLost, admit) {
      client.input.takeOver(stream, new MessageReader(deliver, admit), whenLost);
      client.notifyLost(whenLost);
    },
    isWritable: () => stream.writable,
    write(chunks) {
      if (chunks.length === 1) {
        stream.write(chunks[0]);
        return;
      }
      stream.cork();
      for (const chunk of chunks) stream.write(chunk);
      stream.uncork();
    },
    pause: () => void stream.pause(),
    resume: () => void stream.resume(),
    cancel: () => sendCancel(internals),
    end: () => endClient(client),
    destroy: () => void stream.destroy(),
  };
}

/** A client of pg until the session is open. */
class SocketClient extends pg.Client {
  readonly input: SocketInput;
  readonly parameters = new Map<string, string>();
  #lost: ((reason: Error) => void) | null = null;
  #reason: Error | null = null;

  constructor(server: ServerOptions, applicationName: string) {
    const input = new SocketInput();
    super({
      ...server,
      fallback_application_name: applicationName,
      keepAlive: true,
      keepAliveInitialDelayMillis: 30_000,
      // pg passes its connection options, which its type omits.
      stream: ((options: { ssl?: unknown }) => input.makeSocket(options)) as () => Socket,
    });
    this.input = input;
    const internals = this as unknown as ClientInternals;
    const startup = internals.getStartupConf.bind(this);
    internals.getStartupConf = () => ({ ...startup(), DateStyle: "ISO", IntervalStyle: "postgres" });
    this.connection.on("parameterStatus", ({ parameterName, parameterValue }) =>
      this.parameters.set(parameterName, parameterValue),
    );
    this.on("error", (error) => {
      this.#reason ??= error;
    });
    this.on("end", () => {
      this.#reason ??= new Error("The connection ended");
      this.#lost?.(this.#reason);
    });
  }

  /** Calls back when the connection ends, or at once if it has ended already. */
  notifyLost(lost: (reason: Error) => void): void {
    this.#lost = lost;
    if (this.#reason) lost(this.#reason);
  }
}

/** The bytes from the server. pg receives them until `takeOver`; afterwards they go from the static read buffer to our reader. */
class SocketInput {
  #receive: ((bytes: Buffer, length: number) => void) | null = null;
  #plain: Socket | null = null;

  makeSocket({ ssl }: { ssl?: unknown }): Socket {
    // TLS reads the socket directly and bypasses onread.
    if (ssl) return new Socket();
    const readBuffer = Buffer.allocUnsafeSlow(READ_BUFFER_BYTES);
    const plain = new Socket({
      onread: {
        buffer: readBuffer,
        callback: (length) => {
          if (this.#receive) this.#receive(readBuffer, length);
          else plain.emit("data", Buffer.from(readBuffer.subarray(0, length)));
          return true;
        },
      },
    });
    this.#plain = plain;
    return plain;
  }

  takeOver(stream: Duplex, reader: MessageReader, whenLost: (reason: Error) => void): void {
    this.#receive = (bytes, length) => {
      try {
        reader.read(bytes, length);
      } catch (error) {
        this.#receive = () => {};
        stream.destroy();
        whenLost(error as Error);
      }
    };
    stream.removeAllListeners("data");
    if (stream !== this.#plain) stream.on("data", (chunk: Buffer) => this.#receive!(chunk, chunk.length));
  }
}

function sendCancel({ processID, secretKey, host, port, connectionParameters }: ClientInternals): Promise<void> {
  const { ssl, sslnegotiation: sslNegotiation } = connectionParameters;
  const connection = new pg.Connection({ ssl, sslNegotiation } as pg.ConnectionConfig) as ConnectionInternals;
  checkMessages(connection);
  return new Promise((resolve, reject) => {
    const cancel = () => connection.cancel(processID, secretKey);
    const timer = setTimeout(() => {
      reject(new Error("The server did not take a request to cancel"));
      connection.stream.destroy();
    }, CANCEL_TIMEOUT_MS);
    connection.on("connect", () => {
      if (!ssl) cancel();
      else if (sslNegotiation !== "direct") connection.requestSsl();
    });
    connection.on("sslconnect", cancel);
    connection.on("error", () => connection.stream.destroy());
    // The server closes the connection after it has processed the cancel request.
    connection.on("end", () => {
      clearTimeout(timer);
      resolve();
    });
    if (host.startsWith("/")) connection.connect(`${host}/.s.PGSQL.${port}`);
    else connection.connect(port, host);
  });
}
