import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

export type SpawnedService = {
  readonly address: string;
  /** What it says until it is ready. */
  readonly announcement: string;
  stop(): Promise<void>;
};

type Options = {
  readonly folder: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
};

/** The service as a process of its own, on a free port. */
export async function spawnService({ folder, environment }: Options): Promise<SpawnedService> {
  const service = spawn(process.execPath, ["server.ts"], {
    cwd: folder,
    env: { ...environment, PORT: "0" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const announcement = (await linesUntil(service, /^ +ready in/)).join("\n");
  return {
    address: /^ +address +(\S+)/m.exec(announcement)![1]!,
    announcement,
    stop: async () => {
      const ended = once(service, "exit");
      service.kill("SIGINT");
      await ended;
    },
  };
}

/** What a program says, up to the line by which one knows that it is ready. */
export async function linesUntil(program: ChildProcess, pattern: RegExp): Promise<readonly string[]> {
  const lines = createInterface({ input: program.stdout! });
  const { promise, resolve, reject } = Promise.withResolvers<readonly string[]>();
  const said: string[] = [];
  lines.on("line", (line) => {
    said.push(line);
    if (pattern.test(line)) resolve(said);
  });
  lines.on("close", () => reject(new Error(`It never said ${pattern}:\n${said.join("\n")}`)));
  return promise;
}
