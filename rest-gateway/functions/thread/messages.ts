/** The `imports` of deno.json, and the URL of that file. */
export type ImportMap = { readonly imports: Readonly<Record<string, string>>; readonly base: string };

/** The `compilerOptions` of deno.json for JSX. */
export type JsxOptions = {
  readonly jsx?: string;
  readonly jsxFactory?: string;
  readonly jsxFragmentFactory?: string;
  readonly jsxImportSource?: string;
};

/** The data with which a thread is started. */
export type ThreadData = {
  readonly name: string;
  /** The URL of the handler's file. */
  readonly entry: string;
  readonly importMap: ImportMap | null;
  readonly jsx: JsxOptions | null;
};

/** The limit of the reason with which a WebSocket is closed (RFC 6455, 5.5). */
export const MAX_REASON_BYTES = 123;

/** A message whose id its sender adds. */
export type WithoutId<T> = T extends { readonly id: number } ? Omit<T, "id"> : never;

export type HeaderList = readonly (readonly [name: string, value: string])[];

export type CallHead = {
  readonly method: string;
  readonly url: string;
  readonly headers: HeaderList;
  readonly hasBody: boolean;
  readonly requestId: string;
  readonly address: string | null;
};

/** A message of a WebSocket. Its receiver confirms its bytes, so that a bounded number is on the way. */
type SocketMessage = {
  readonly type: "message";
  readonly id: number;
  readonly data: string | Uint8Array;
  readonly bytes: number;
};

/** A message to the thread about a WebSocket. */
export type SocketOrder =
  | SocketMessage
  | { readonly type: "opened"; readonly id: number }
  /** The client's connection has taken a message of so many bytes. */
  | { readonly type: "sent"; readonly id: number; readonly bytes: number }
  /** The socket is closed; `failure` is the text of the error event, if there is one. */
  | {
      readonly type: "closed";
      readonly id: number;
      readonly code: number;
      readonly reason: string;
      readonly failure: string | null;
    };

/** A message from the thread about a WebSocket. */
export type SocketReport =
  | SocketMessage
  /** The handler has received a message that counts for so many bytes. */
  | { readonly type: "taken"; readonly id: number; readonly bytes: number }
  /** The function closes the socket, without a code if it is null. */
  | { readonly type: "close"; readonly id: number; readonly code: number | null; readonly reason: string }
  /** The function knows that the socket is closed. */
  | { readonly type: "left"; readonly id: number };

/** A message to the thread. */
export type ThreadOrder =
  | SocketOrder
  | { readonly type: "call"; readonly id: number; readonly head: CallHead }
  /** The next piece of the request's body, after `pull`; null at its end. */
  | { readonly type: "piece"; readonly id: number; readonly piece: Uint8Array | null }
  /** The request's body ended early. */
  | { readonly type: "bodyFailed"; readonly id: number }
  /** The client takes the next piece of the response. */
  | { readonly type: "pull"; readonly id: number }
  | { readonly type: "abort"; readonly id: number }
  | { readonly type: "ping" };

export type LogLevel = "debug" | "info" | "warn" | "error";

export type ResponseHead = { readonly status: number; readonly headers: HeaderList };

/** A message from the thread. */
export type ThreadReport =
  | SocketReport
  /** The response is the WebSocket of the request, with this subprotocol unless it is "". */
  | { readonly type: "upgrade"; readonly id: number; readonly protocol: string }
  /** The thread has started. `systemId` is its id in the operating system, if threads have one there. */
  | { readonly type: "ready"; readonly systemId: number | null }
  | { readonly type: "bootFailed"; readonly reason: string }
  /** The thread calls the handler next. */
  | { readonly type: "begun"; readonly id: number }
  | { readonly type: "pull"; readonly id: number }
  /** The response; `body` is only set if it is complete. */
  | {
      readonly type: "head";
      readonly id: number;
      readonly head: ResponseHead;
      readonly body: Uint8Array | null;
      readonly isComplete: boolean;
    }
  | { readonly type: "piece"; readonly id: number; readonly piece: Uint8Array | null }
  | { readonly type: "bodyFailed"; readonly id: number }
  /** The number of pending promises of `EdgeRuntime.waitUntil`. */
  | { readonly type: "background"; readonly count: number }
  | { readonly type: "log"; readonly level: LogLevel; readonly text: string; readonly requestId: string | null }
  | { readonly type: "pong" };
