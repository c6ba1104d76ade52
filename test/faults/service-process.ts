import { readdir, readFile } from "node:fs/promises";
import { type Heap, openHeap } from "../../bench/measuring/heap.ts";
import { type Program, startProgram } from "../program.ts";
import { SECRET } from "../secret.ts";
import { until } from "../until.ts";

/** The program itself, as `npm start` runs it, in a process of its own that can be looked into. */
export type ServiceProcess = Program &
  AsyncDisposable & {
    readonly heap: Heap;
    /** Counts its open files and sockets. */
    openFiles(): Promise<number>;
    residentMebibytes(): Promise<number>;
  };

export async function startServiceProcess(environment: NodeJS.ProcessEnv): Promise<ServiceProcess> {
  const program = await startProgram({
    JWT_SECRET: SECRET,
    RATE_LIMIT: "0",
    LOG_LEVEL: "warn",
    // Refuses requests soon that wait for the database, so that tests take less time.
    DB_ACQUIRE_TIMEOUT_SECONDS: "2",
    NODE_OPTIONS: "--inspect=127.0.0.1:0",
    ...environment,
  });
  const { child } = program;
  if (child.exitCode !== null) throw new Error(`The service did not start:\n${program.logged()}`);
  // A start waits for the schema of GraphQL for a limited time only, which a machine under load exceeds.
  await until(() => answersGraphql(program.url));
  const heap = await openHeap(/ws:\/\/\S+/.exec(program.logged())![0]);
  return {
    ...program,
    heap,
    openFiles: async () => (await readdir(`/proc/${child.pid}/fd`)).length,
    async residentMebibytes() {
      const status = await readFile(`/proc/${child.pid}/status`, "utf8");
      return Number(/^VmRSS:\s+(\d+)/m.exec(status)![1]) / 1024;
    },
    [Symbol.asyncDispose]: () => program.kill(),
  };
}

async function answersGraphql(url: string): Promise<boolean> {
  const response = await fetch(`${url}/graphql`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ query: "{ __typename }" }),
  });
  return !(await response.text()).includes("SERVICE_UNAVAILABLE");
}
