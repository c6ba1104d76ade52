import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";

export type Terminal = {
  /** Types it in, and waits until it has been done. */
  run(script: string): Promise<{ readonly output: string; readonly seconds: number }>;
  close(): Promise<void>;
};

type Options = {
  readonly folder: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
};

/** One shell for a whole walk: what a block has set, the next one has. */
export function openTerminal({ folder, environment }: Options): Terminal {
  const shell = spawn("bash", ["-o", "pipefail"], {
    cwd: folder,
    env: environment,
    stdio: ["pipe", "pipe", "inherit"],
  });
  shell.stdout.setEncoding("utf8");

  return {
    run: async (script) => {
      const [end, startedAt] = [randomUUID(), performance.now()];
      // A program that reads what is typed must not read the next command.
      shell.stdin.write(`{\n${script}\n} < /dev/null 2>&1\necho; echo ${end}\n`);
      let output = "";
      while (!output.endsWith(`\n${end}\n`)) output += (await once(shell.stdout, "data"))[0];
      const seconds = (performance.now() - startedAt) / 1000;
      return { output: output.slice(0, -`\n${end}\n`.length), seconds };
    },
    close: async () => {
      const ended = once(shell, "exit");
      shell.stdin.end();
      await ended;
    },
  };
}
