import type { IncomingHttpHeaders } from "node:http";
import type { Abort } from "../../engine/abort.ts";
import type { BodyLimit } from "../../engine/caller/body-limit.ts";
import type { Caller } from "../../engine/caller/caller.ts";

/** What is known of a request here; whoever listens on the socket says the rest. */
export type HttpRequest = {
  readonly id: string;
  readonly method: string;
  readonly path: string;
  readonly rawQuery: string;
  readonly headers: IncomingHttpHeaders;
  readonly stages: { enter(name: string): void };
  readonly signal: Abort;
  /** Where it came from. */
  connection(): { readonly address: string | null };
  /** Refuses a caller whose requests are too many. */
  admit(caller: Caller): void;
  /** Headers of the answer, whatever it will be. */
  tell(headers: Readonly<Record<string, string>>): void;
  readBody(limit: BodyLimit): Promise<Buffer>;
  /** Calls back when the answer has been sent, or the client has left. */
  whenSent(callback: () => void): void;
};

export type HttpResponse = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Buffer | null;
};
