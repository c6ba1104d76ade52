import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { until } from "../until.ts";
import { ADDRESS } from "./five-minutes.ts";
import { linesUntil } from "./lines-until.ts";
import { openTerminal } from "./terminal.ts";
import { secondsSince } from "./walk-page.ts";

const WALK = /^## First row$(.*?)^## /ms;
const BLOCK = /^```sh\n(.*?)^```$/gms;
const INSTALL = "npm install ../content-service-*.tgz\n";

export type WalkStep = {
  readonly commands: string;
  readonly output: string;
  readonly seconds: number;
};

type WalkOptions = {
  /** An empty folder. */
  readonly folder: string;
  /** The packed service. */
  readonly tarball: string;
  readonly environment: NodeJS.ProcessEnv;
};

/**
 * Runs the commands of docs/projects.md, "First row", with the tarball: install, start for development,
 * create a table, insert a row. The work is done with the address of the service before it is stopped.
 */
export async function walkProject(
  page: string,
  { folder, tarball, environment }: WalkOptions,
  work: (url: string) => Promise<void>,
): Promise<WalkStep[]> {
  const [install, start, createTable, insertRow] = [...WALK.exec(page)![1]!.matchAll(BLOCK)].map(([, text]) => text!);
  if (!install?.includes(INSTALL) || start !== "npm run dev\n" || !insertRow)
    throw new Error("The steps of the first row have changed.");
  const terminal = openTerminal({ folder, environment });
  const steps: WalkStep[] = [];
  const type = async (commands: string, url = ADDRESS) => {
    const { output, seconds } = await terminal.run(commands.replaceAll(ADDRESS, url));
    steps.push({ commands, output: output.replaceAll(url, ADDRESS), seconds });
  };
  let service: ChildProcess | null = null;
  try {
    const { output, seconds } = await terminal.run(install.replace(INSTALL, `npm install ${tarball}\n`));
    steps.push({ commands: install, output, seconds });
    const startedAt = performance.now();
    service = spawn("npm", ["run", "dev"], {
      cwd: join(folder, "my-app"),
      env: { ...environment, PORT: "0" },
      stdio: ["ignore", "pipe", "ignore"],
    });
    const lines = (await linesUntil(service, /ready in/)).join("\n");
    const url = /address +(\S+)/.exec(lines)![1]!;
    steps.push({ commands: start, output: lines.replaceAll(url, ADDRESS), seconds: secondsSince(startedAt) });
    await type(createTable!, url);
    await until(async () => (await fetch(`${url}/api/v1/tasks`)).ok);
    await type(insertRow, url);
    await work(url);
    return steps;
  } finally {
    await terminal.close();
    if (service) {
      const ended = once(service, "exit");
      service.kill("SIGTERM");
      await ended;
    }
  }
}
