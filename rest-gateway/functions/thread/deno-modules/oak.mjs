// The project's package @oakserver/oak, whose applications listen by Deno.serve instead of a port of their own.

import { Application as NodeApplication } from "@oakserver/oak";

export * from "@oakserver/oak";

export class Application extends NodeApplication {
  /** The promise is pending for as long as the function serves, as in Deno. */
  listen() {
    Deno.serve(async (request, { remoteAddr }) => {
      // Until version 12 a connection is expected, and later the address.
      const address = { ...remoteAddr, remoteAddr, localAddr: remoteAddr, rid: 0 };
      const response = await this.handle(request, address, new URL(request.url).protocol === "https:");
      return response ?? new Response(null, { status: 404 });
    });
    return new Promise(() => {});
  }
}
