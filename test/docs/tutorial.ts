import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { REPOSITORY } from "../repository.ts";
import { until } from "../until.ts";
import { ADDRESS } from "./five-minutes.ts";
import { linesUntil } from "./lines-until.ts";
import { openTerminal } from "./terminal.ts";

const BLOCK = /^```(sh|text|json|sql|js)(?: (\S+))?\n(.*?)^```$/gms;
const START = /^(?:NODE_ENV=(production) )?npm (run dev|start)\n$/;

/** A file of the current migration, which `npm run dev` applies when it is saved. */
const CURRENT_MIGRATION = /(?:^|>> )db\/migrations\/current\/\S+/;

export type TutorialStep = {
  readonly commands: string;
  readonly output: string;
  /** The output that the page shows; null if it shows none. */
  readonly expected: string | null;
  /** JSON is published in lines that can be read, whatever the spaces of the response are. */
  readonly isJson: boolean;
};

/** The pages of the tutorial, in the order in which the index lists them. */
export async function readTutorial(): Promise<{ readonly name: string; readonly text: string }[]> {
  const index = await readFile(join(REPOSITORY, "docs/README.md"), "utf8");
  const names = [...index.matchAll(/\(tutorial\/([\w-]+)\.md\)/g)].map(([, name]) => name!);
  return Promise.all(
    names.map(async (name) => ({ name, text: await readFile(join(REPOSITORY, `docs/tutorial/${name}.md`), "utf8") })),
  );
}

type Options = {
  /** An empty folder, beside which the project is created. */
  readonly folder: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Returns the commands that are typed instead of those that install packages. */
  readonly install?: (commands: string) => string;
  /** The address of a service that runs already. */
  readonly address?: string;
};

/** Does what the pages of a tutorial say, in their order: writes their files, starts their services, types their commands. */
export async function followTutorial(
  pages: string,
  { folder, environment, install = (commands) => commands, address = ADDRESS }: Options,
): Promise<TutorialStep[]> {
  const terminal = openTerminal({ folder, environment });
  const steps: TutorialStep[] = [];
  let [service, url]: [ChildProcess | null, string] = [null, address];
  let isDevelopment = false;
  const record = (commands: string, output: string) => {
    steps.push({
      commands,
      output: output.replaceAll("\r\n", "\n").replaceAll(url, ADDRESS),
      expected: null,
      isJson: false,
    });
  };
  const currentFolder = async () => (await terminal.run("pwd")).output.trim();
  const type = async (commands: string) => {
    const { output } = await terminal.run(install(commands).replaceAll(ADDRESS, url));
    record(commands, output);
  };
  const save = async (file: string, text: string) => {
    const path = join(await currentFolder(), file);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, text.replaceAll(ADDRESS, url));
  };
  try {
    for (const [, language, file, text] of pages.matchAll(BLOCK)) {
      const [, mode, command] = START.exec(text!) ?? [];
      if (language === "text" || language === "json") {
        steps.push({ ...steps.pop()!, expected: text!, isJson: language === "json" });
      } else if (command) {
        await stop(service);
        service = spawn("npm", command.split(" "), {
          cwd: await currentFolder(),
          env: { ...environment, PORT: "0", ...(mode && { NODE_ENV: mode }) },
          stdio: ["ignore", "pipe", "inherit"],
        });
        const lines = await linesUntil(service, /ready in/);
        url = /address +(\S+)/.exec(lines.join("\n"))![1]!;
        isDevelopment = command === "run dev";
        record(text!, lines.join("\n"));
        await terminal.run(`URL=${url}`);
      } else {
        const isSaved = isDevelopment && CURRENT_MIGRATION.test(file ?? text!);
        const applied = isSaved ? linesUntil(service!, /: applied in/) : null;
        await (file ? save(file, text!) : type(text!));
        await applied;
        if (isSaved) await untilServed(url, text!);
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
  // npm ends before what it has started, which has the other end of the pipe.
  const ended = once(service, "close");
  service.kill("SIGTERM");
  await ended;
}

/** The service finds out about new tables a moment after they were created. */
async function untilServed(url: string, sql: string): Promise<void> {
  for (const [, table] of sql.matchAll(/^create table public\.(\w+)/gm)) {
    await until(async () => (await fetch(`${url}/api/v1/${table}`)).status !== 404);
  }
}

/** True if a step has the output that the page shows, if it shows any. */
export function isAsPublished({ commands, output, expected, isJson }: TutorialStep): boolean {
  if (expected === null) return true;
  const compact = (text: string) => (isJson ? JSON.stringify(JSON.parse(text)) : text.trim());
  return outputPattern(compact(expected), commands).test(compact(output));
}

/**
 * A published output as a pattern, in which … stands for any text; as the last line, also for none. Throws for one that shows nothing but
 * words of its commands: the error of a command that does not exist has them, too.
 */
export function outputPattern(published: string, commands: string): RegExp {
  const parts = published.trim().replace(/\n…$/, "…").split("…");
  if (parts.every((part) => commands.includes(part.trim())))
    throw new Error(`An output that shows nothing:\n${commands}\n${published}`);
  return new RegExp(`^${parts.map((part) => RegExp.escape(part)).join("[^]*")}$`);
}
