// The server of Deno's std/http/server.ts, which Deno.serve has replaced.

type Address = { readonly transport: "tcp"; readonly hostname: string; readonly port: number };
type ConnectionInfo = { readonly localAddr: Address; readonly remoteAddr: Address };
type Handler = (request: Request, connection: ConnectionInfo) => Response | Promise<Response>;
type ServeInit = {
  readonly onError?: (error: unknown) => Response | Promise<Response>;
  readonly onListen?: (address: { hostname: string; port: number }) => void;
};

declare const Deno: {
  serve(options: ServeInit, handler: (request: Request, info: { readonly remoteAddr: Address }) => unknown): unknown;
};

const LOCAL_ADDRESS: Address = { transport: "tcp", hostname: "0.0.0.0", port: 0 };

/** Serves requests. As in Deno, the promise is pending for as long as the function serves. */
export function serve(handler: Handler, { onError, onListen }: ServeInit = {}): Promise<void> {
  if (typeof handler !== "function") throw new TypeError("serve requires a handler");
  Deno.serve({ ...(onError && { onError }), ...(onListen && { onListen }) }, (request, { remoteAddr }) =>
    handler(request, { localAddr: LOCAL_ADDRESS, remoteAddr }),
  );
  return new Promise(() => {});
}
