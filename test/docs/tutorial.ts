import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { ADDRESS } from "./five-minutes.ts";
import { linesUntil } from "./lines-until.ts";
import { openTerminal } from "./terminal.ts";

const BLOCK = /^```(sh|text|sql|js)(?: (\S+))?\n(.*?)^```$/gms;
const START = /^(?:NODE_ENV=(production) )?npm (run dev|start)\n$/;

export type TutorialStep = { readonly commands: string; readonly expected: string | null; readonly output: string };

type Options = {
  /** An empty folder, beside which the project is created. */
  readonly folder: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Returns the commands that are typed instead of those that install packages. */
  readonly install: (commands: string) => string;
};

/** Follows a tutorial from its first block to its last: writes its files, starts its services, types its commands. */
export async function followTutorial(page: string, { folder, environment, install }: Options): Promise<TutorialStep[]> {
  const terminal = openTerminal({ folder, environment });
  const steps: TutorialStep[] = [];
  let [service, url]: [ChildProcess | null, string] = [null, ADDRESS];
  const currentFolder = async () => (await terminal.run("pwd")).output.trim();
  try {
    for (const [, language, file, text] of page.matchAll(BLOCK)) {
      const [, mode, command] = START.exec(text!) ?? [];
      if (language === "text") {
        steps.push({ ...steps.pop()!, expected: text! });
      } else if (file) {
        const path = join(await currentFolder(), file);
        await mkdir(dirname(path), { recursive: true });
        await writeFile(path, text!.replaceAll(ADDRESS, url));
      } else if (command) {
        await stop(service);
        service = spawn("npm", command.split(" "), {
          cwd: await currentFolder(),
          env: { ...environment, PORT: "0", ...(mode && { NODE_ENV: mode }) },
          stdio: ["ignore", "pipe", "inherit"],
        });
        const lines = await linesUntil(service, /ready in/);
        url = /address +(\S+)/.exec(lines.join("\n"))![1]!;
        await terminal.run(`URL=${url}`);
      } else {
        const { output } = await terminal.run(install(text!).replaceAll(ADDRESS, url));
        steps.push({ commands: text!, expected: null, output: output.replaceAll(url, ADDRESS) });
      }
    }
    return steps;
  } finally {
    await terminal.close();
    await stop(service);
  }
}

async function stop(service: ChildProcess | null): Promise<void> {
  if (!service) return;
  const ended = once(service, "exit");
  service.kill("SIGTERM");
  await ended;
}

/**
 * A published output as a pattern, in which … stands for any text. Throws for one that shows nothing but words of its commands: the
 * error of a command that does not exist has them, too.
 */
export function outputPattern(published: string, commands: string): RegExp {
  const parts = published.trim().split("…");
  if (parts.every((part) => commands.includes(part.trim())))
    throw new Error(`An output that shows nothing:\n${commands}\n${published}`);
  return new RegExp(`^${parts.map((part) => RegExp.escape(part)).join("[^]*")}$`);
}
