/** `imports` of deno.json, and the URL of that file. */
export type ImportMap = { readonly imports: Readonly<Record<string, string>>; readonly base: string };

/** What a thread is started with. */
export type ThreadData = {
  readonly name: string;
  /** The URL of the handler's file. */
  readonly entry: string;
  readonly importMap: ImportMap | null;
};

export type HeaderList = readonly (readonly [name: string, value: string])[];

export type CallHead = {
  readonly method: string;
  readonly url: string;
  readonly headers: HeaderList;
  readonly hasBody: boolean;
  readonly requestId: string;
  readonly address: string | null;
};

/** To the thread. */
export type ThreadOrder =
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

/** From the thread. */
export type ThreadReport =
  /** The id of the operating system, where threads have one. */
  | { readonly type: "ready"; readonly systemId: number | null }
  | { readonly type: "bootFailed"; readonly reason: string }
  /** The handler is called next. */
  | { readonly type: "begun"; readonly id: number }
  | { readonly type: "pull"; readonly id: number }
  /** `body` if it is complete. */
  | {
      readonly type: "head";
      readonly id: number;
      readonly head: ResponseHead;
      readonly body: Uint8Array | null;
      readonly isComplete: boolean;
    }
  | { readonly type: "piece"; readonly id: number; readonly piece: Uint8Array | null }
  | { readonly type: "bodyFailed"; readonly id: number }
  /** How many promises of `EdgeRuntime.waitUntil` are pending. */
  | { readonly type: "background"; readonly count: number }
  | { readonly type: "log"; readonly level: LogLevel; readonly text: string; readonly requestId: string | null }
  | { readonly type: "pong" };
