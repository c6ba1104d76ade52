import { once } from "node:events";
import { WebSocket } from "ws";

/** Inspects another node process, which was started with `--inspect`. */
export type Heap = AsyncDisposable & {
  /** Returns the bytes in use after a garbage collection. */
  used(): Promise<number>;
  /** Evaluates an expression in the process, like the debugger's console. */
  evaluate(expression: string): Promise<void>;
  /** Returns the memory that the process reports. */
  memory(): Promise<ProcessMemory>;
  /** Returns the objects on the heap, by the names of their constructors. The snapshot makes the process larger. */
  objects(): Promise<HeapObjects>;
};

/** The memory in bytes. The resident memory includes all parts, and freed memory that the allocators keep. */
export type ProcessMemory = Readonly<Record<"rss" | "heapTotal" | "heapUsed" | "external" | "arrayBuffers", number>>;

export type HeapObjects = ReadonlyMap<string, { readonly count: number; readonly bytes: number }>;

type HeapSnapshot = {
  readonly snapshot: { readonly meta: { readonly node_fields: string[]; readonly node_types: [string[]] } };
  readonly nodes: readonly number[];
  readonly strings: readonly string[];
};

export async function openHeap(inspectorUrl: string): Promise<Heap> {
  const socket = new WebSocket(inspectorUrl, { perMessageDeflate: false, maxPayload: 0 });
  let chunks: string[] = [];
  await once(socket, "open");
  const waiting = new Map<number, PromiseWithResolvers<object>>();
  socket.on("message", (data) => {
    const { id, result, error, method, params } = JSON.parse(String(data));
    if (method === "HeapProfiler.addHeapSnapshotChunk") chunks.push(params.chunk);
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
      // The second collection removes objects with a finalizer.
      for (let round = 0; round < 2; round++) await ask("HeapProfiler.collectGarbage");
      const { usedSize } = (await ask("Runtime.getHeapUsage")) as { usedSize: number };
      return usedSize;
    },
    async evaluate(expression) {
      await ask("Runtime.evaluate", { expression });
    },
    async memory() {
      const params = { expression: "process.memoryUsage()", returnByValue: true };
      const { result } = (await ask("Runtime.evaluate", params)) as { result: { value: ProcessMemory } };
      return result.value;
    },
    async objects() {
      chunks = [];
      await ask("HeapProfiler.takeHeapSnapshot", { reportProgress: false });
      return countObjects(JSON.parse(chunks.join("")) as HeapSnapshot);
    },
    async [Symbol.asyncDispose]() {
      socket.close();
      if (socket.readyState !== WebSocket.CLOSED) await once(socket, "close");
    },
  };
}

function countObjects({ snapshot, nodes, strings }: HeapSnapshot): HeapObjects {
  const { node_fields: fields, node_types: types } = snapshot.meta;
  const [type, name, size] = ["type", "name", "self_size"].map((field) => fields.indexOf(field)) as [
    number,
    number,
    number,
  ];
  const objects = new Map<string, { count: number; bytes: number }>();
  for (let at = 0; at < nodes.length; at += fields.length) {
    const kind = types[0][nodes[at + type]!]!;
    // The name of a string is the string itself, so its kind is the label.
    const label = kind.includes("string") ? kind : `${kind} ${strings[nodes[at + name]!]!.slice(0, 60)}`;
    const counted = objects.get(label) ?? { count: 0, bytes: 0 };
    counted.count++;
    counted.bytes += nodes[at + size]!;
    objects.set(label, counted);
  }
  return objects;
}

/** Returns the address of the inspector of a process that was started with `--inspect=127.0.0.1:<port>`. */
export async function findInspector(port: number): Promise<string> {
  const targets = (await (await fetch(`http://127.0.0.1:${port}/json/list`)).json()) as {
    webSocketDebuggerUrl: string;
  }[];
  return targets[0]!.webSocketDebuggerUrl;
}
