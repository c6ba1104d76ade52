import { AsyncLocalStorage } from "node:async_hooks";
import { readlinkSync } from "node:fs";
import { getPriority, setPriority } from "node:os";
import { setImmediate as nextTurn } from "node:timers/promises";
import { inspect } from "node:util";
import { parentPort, workerData } from "node:worker_threads";
import { captureConsole, installFetch } from "./changed-globals.ts";
import { makeDenoNamespace, type Served, type ServeHandler } from "./deno-namespace.ts";
import type { ThreadData, ThreadOrder, ThreadReport } from "./messages.ts";
import { installModuleHooks } from "./module-hooks.ts";
import { serveNodeServers } from "./node-servers.ts";
import { ServedCall } from "./served-call.ts";
import { makeSupabaseNamespace } from "./supabase-namespace.ts";
import { transferListOf } from "./transferred-bytes.ts";
import { makeUpgradeWebSocket } from "./upgrade-web-socket.ts";

// The program of a thread: loads one function, and runs its handler for each request that the gateway hands over.

/** The priority, like that of `nice`, which on Linux is this thread's only: its work, including the loading of code, comes after the gateway's. */
const YIELDING_PRIORITY = 10;

const port = parentPort!;
const { entry, importMap, jsx } = workerData as ThreadData;
const report = (message: ThreadReport) => port.postMessage(message, transferListOf(message));
const currentCall = new AsyncLocalStorage<ServedCall>();
const registered = Promise.withResolvers<void>();
const served: Served = { handler: null, onError: null, onRegistered: registered.resolve };
const calls = new Map<number, ServedCall>();
const events = new EventTarget();
let backgroundCount = 0;

yieldProcessor();
process.emitWarning = () => {};
process.setSourceMapsEnabled(true);
captureConsole((level, text) =>
  report({ type: "log", level, text, requestId: currentCall.getStore()?.requestId ?? null }),
);
installFetch();
installModuleHooks({ importMap, jsx, entry });
serveNodeServers(served);
Object.assign(globalThis, {
  Deno: makeDenoNamespace(
    served,
    makeUpgradeWebSocket(() => currentCall.getStore()),
  ),
  EdgeRuntime: { waitUntil: awaitInBackground },
  Supabase: makeSupabaseNamespace(),
  // Threads of Node have no such events. None is dispatched, because a thread is ended without notice.
  addEventListener: events.addEventListener.bind(events),
  removeEventListener: events.removeEventListener.bind(events),
  dispatchEvent: events.dispatchEvent.bind(events),
});

try {
  const loading: Promise<{ readonly default?: unknown }> = import(entry);
  // A module that awaits its server, as `await serve(handler)` does, is never loaded completely.
  const module = await Promise.race([loading, registered.promise.then(() => nextTurn(null))]);
  served.handler ??= findHandler(module?.default);
  if (!served.handler)
    throw new Error("The function has no handler: call Deno.serve(handler), or export default { fetch }");
  port.on("message", handleOrder);
  report({ type: "ready", systemId: readSystemId() });
  // A later error of the module ends the thread, as other errors that nobody catches.
  if (!module) void loading.then(() => {});
} catch (error) {
  report({ type: "bootFailed", reason: inspect(error) });
}

/** Lowers the thread's priority, but never above that of a service with a lower priority. */
function yieldProcessor(): void {
  if (process.platform !== "linux") return;
  try {
    setPriority(Math.max(getPriority(), YIELDING_PRIORITY));
  } catch {
    // A sandbox forbids the call, and functions run without it.
  }
}

/** Reads the thread's id, since Linux gives each thread an id and a priority of its own. */
function readSystemId(): number | null {
  if (process.platform !== "linux") return null;
  try {
    return Number(readlinkSync("/proc/thread-self").split("/").at(-1)) || null;
  } catch {
    return null;
  }
}

function findHandler(exported: unknown): ServeHandler | null {
  if (typeof exported === "function") return exported as ServeHandler;
  const { fetch } = (exported ?? {}) as { readonly fetch?: unknown };
  return typeof fetch === "function" ? (request, info) => fetch.call(exported, request, info) : null;
}

function handleOrder(order: ThreadOrder): void {
  if (order.type === "ping") report({ type: "pong" });
  else if (order.type === "call") begin(order);
  else calls.get(order.id)?.handle(order);
}

function begin(order: Extract<ThreadOrder, { readonly type: "call" }>): void {
  report({ type: "begun", id: order.id });
  const call = new ServedCall(order, report);
  calls.set(order.id, call);
  void currentCall.run(call, () => call.run(respond)).finally(() => calls.delete(order.id));
}

async function respond(request: Request, address: string | null): Promise<Response> {
  try {
    const response = await served.handler!(request, {
      remoteAddr: { transport: "tcp", hostname: address ?? "", port: 0 },
    });
    if (!isResponse(response)) throw new TypeError("The handler returned no Response");
    return response;
  } catch (error) {
    if (request.signal.aborted) throw error;
    console.error(error);
    return served.onError ? served.onError(error) : new Response("Internal Server Error", { status: 500 });
  }
}

/** Returns true for responses, including those of packages with classes of their own. */
function isResponse(value: unknown): value is Response {
  const { status, headers } = (value ?? {}) as Partial<Response>;
  return typeof status === "number" && typeof headers?.get === "function";
}

/** Keeps the thread from being ended as idle while the promise is pending. */
function awaitInBackground<T>(promise: Promise<T>): Promise<T> {
  report({ type: "background", count: ++backgroundCount });
  const settled = () => report({ type: "background", count: --backgroundCount });
  Promise.resolve(promise).then(settled, (error) => {
    console.error(error);
    settled();
  });
  return promise;
}
