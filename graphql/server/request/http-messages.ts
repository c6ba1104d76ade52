import type { IncomingHttpHeaders } from "node:http";
import type { Caller } from "#accounts/identity";
import type { BodyLimit, ResponseBody } from "#http";
import type { AbortLike } from "#runtime/concurrency";

/** The request as the gateway passes it on. */
export type GraphqlHttpRequest = {
  readonly id: string;
  readonly method: string;
  readonly path: string;
  readonly rawQuery: string;
  readonly headers: IncomingHttpHeaders;
  readonly stages: { enter(name: string): void };
  readonly signal: AbortLike;
  /** The client's connection. */
  connection(): { readonly address: string | null };
  /** Throws when the caller exceeds its rate limit. */
  admit(caller: Caller): void;
  /** Sets headers of the response. */
  addResponseHeaders(headers: Readonly<Record<string, string>>): void;
  readBody(limit: BodyLimit): Promise<Buffer>;
  /** Calls back when the response is sent or the client has disconnected. */
  whenSent(callback: () => void): void;
};

export type GraphqlHttpResponse = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: ResponseBody | null;
};
