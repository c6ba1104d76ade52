import type { IncomingHttpHeaders } from "node:http";
import { type BodyStream, type GatewayResponse, isBodyStream, type ResponseBody } from "#http";
import { type AbortLike, LightAbortSignal } from "#runtime/concurrency";

type RunningCall = { readonly signal: LightAbortSignal; isAmbiguous: boolean };
type CallRequest = { readonly headers: IncomingHttpHeaders; readonly signal: AbortLike };
/** An open call. `close` must be called at its end. */
type OpenCall = { readonly signal: AbortLike; readonly close: () => void };

/**
 * The calls of clients of 2025-11-25, which cancel a call by a notification in a separate request. It names the call by an
 * id that the client has chosen: of two calls with the same credentials, session and id, none is cancelled.
 */
export class RunningCalls {
  readonly #calls = new Map<string, RunningCall>();

  /** Runs the work with a signal that ends with the request, or when the client cancels the call. */
  async run<T>(request: CallRequest, id: unknown, work: (signal: AbortLike) => Promise<T>): Promise<T> {
    const { signal, close } = this.#open(request, id);
    try {
      return await work(signal);
    } finally {
      close();
    }
  }

  /** Runs work like `run`, but its response may be a stream: the call then ends with the stream. */
  async respond(
    request: CallRequest,
    id: unknown,
    work: (signal: AbortLike) => Promise<GatewayResponse<ResponseBody>>,
  ): Promise<GatewayResponse<ResponseBody>> {
    const { signal, close } = this.#open(request, id);
    let body: BodyStream | null = null;
    try {
      const response = await work(signal);
      if (!isBodyStream(response.body)) return response;
      body = closeAtEnd(response.body, close);
      return { ...response, body };
    } finally {
      if (body === null) close();
    }
  }

  cancel(headers: IncomingHttpHeaders, id: unknown): void {
    const call = this.#calls.get(keyOf(headers, id));
    if (call && !call.isAmbiguous) call.signal.abort(new Error("The client has cancelled the call"));
  }

  #open({ headers, signal: outer }: CallRequest, id: unknown): OpenCall {
    const key = keyOf(headers, id);
    const other = this.#calls.get(key);
    if (other) {
      other.isAmbiguous = true;
      return { signal: outer, close: () => {} };
    }
    const call = { signal: new LightAbortSignal(), isAmbiguous: false };
    const close = () => {
      if (this.#calls.get(key) === call) this.#calls.delete(key);
      outer.removeEventListener("abort", forward);
    };
    // A stream that nobody has begun to read would not end by itself.
    const forward = () => {
      close();
      call.signal.abort(outer.reason);
    };
    this.#calls.set(key, call);
    outer.addEventListener("abort", forward);
    if (outer.aborted) forward();
    return { signal: call.signal, close };
  }
}

async function* closeAtEnd(body: BodyStream, close: () => void): BodyStream {
  try {
    yield* body;
  } finally {
    close();
  }
}

function keyOf(headers: IncomingHttpHeaders, id: unknown): string {
  const { authorization, apikey, "user-agent": userAgent, "mcp-session-id": session } = headers;
  return JSON.stringify([authorization ?? apikey, userAgent, session, id]);
}
