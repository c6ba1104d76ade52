import { once } from "node:events";
import { WebSocket } from "ws";

/** Looks into another node process, which was started with `--inspect`. */
export type Heap = AsyncDisposable & {
  /** What is left in use when the collector has been through, in bytes. */
  used(): Promise<number>;
  /** Runs there, as if it were typed into the debugger. */
  evaluate(expression: string): Promise<void>;
};

export async function openHeap(inspectorUrl: string): Promise<Heap> {
  const socket = new WebSocket(inspectorUrl, { perMessageDeflate: false });
  await once(socket, "open");
  const waiting = new Map<number, PromiseWithResolvers<object>>();
  socket.on("message", (data) => {
    const { id, result, error } = JSON.parse(String(data));
    const asked = waiting.get(id);
    waiting.delete(id);
    if (error) asked?.reject(new Error(error.message));
    else asked?.resolve(result);
  });
  socket.on("close", () => {
    for (const asked of waiting.values()) asked.reject(new Error("The process has ended"));
  });
  let asked = 0;
  const ask = (method: string, params: object = {}): Promise<object> => {
    const answer = Promise.withResolvers<object>();
    waiting.set(++asked, answer);
    socket.send(JSON.stringify({ id: asked, method, params }));
    return answer.promise;
  };
  return {
    async used() {
      // What has a finalizer goes with the second collection only.
      for (let round = 0; round < 2; round++) await ask("HeapProfiler.collectGarbage");
      const { usedSize } = (await ask("Runtime.getHeapUsage")) as { usedSize: number };
      return usedSize;
    },
    async evaluate(expression) {
      await ask("Runtime.evaluate", { expression });
    },
    async [Symbol.asyncDispose]() {
      socket.close();
      if (socket.readyState !== WebSocket.CLOSED) await once(socket, "close");
    },
  };
}

/** The address of the inspector of a process that was started with `--inspect=127.0.0.1:<port>`. */
export async function findInspector(port: number): Promise<string> {
  const targets = (await (await fetch(`http://127.0.0.1:${port}/json/list`)).json()) as {
    webSocketDebuggerUrl: string;
  }[];
  return targets[0]!.webSocketDebuggerUrl;
}
