import type { ServedCall } from "./served-call.ts";
import type { ServedSocket } from "./served-socket.ts";

/** `idleTimeout` of Deno is left out: the service pings at Deno's default interval. */
type UpgradeOptions = { readonly protocol?: string };

export type UpgradeWebSocket = (
  request: Request,
  options?: UpgradeOptions,
) => { readonly socket: ServedSocket; readonly response: Response };

/** Makes `Deno.upgradeWebSocket`. The request is the one that is being handled, also if a framework has wrapped it. */
export function makeUpgradeWebSocket(currentCall: () => ServedCall | undefined): UpgradeWebSocket {
  return (_request, { protocol = "" } = {}) => {
    const call = currentCall();
    if (!call) throw new TypeError("Call Deno.upgradeWebSocket while the request is handled");
    const socket = call.upgrade(protocol);
    // Node's Response refuses this status.
    const response = Object.defineProperty(new Response(null), "status", { value: 101 });
    return { socket, response };
  };
}
