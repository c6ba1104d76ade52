import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";

export type Terminal = {
  /** Types it in, and waits until it has been done. Throws if a command, the last one that fails, has another exit code. */
  run(script: string, exitCode?: number): Promise<{ readonly output: string; readonly seconds: number }>;
  close(): Promise<void>;
};

type Options = {
  readonly folder: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
};

/** Opens one shell for a whole walk: the settings of a block remain for the next one. */
export function openTerminal({ folder, environment }: Options): Terminal {
  const shell = spawn("bash", ["-o", "pipefail"], {
    cwd: folder,
    env: environment,
    stdio: ["pipe", "pipe", "inherit"],
  });
  shell.stdout.setEncoding("utf8");

  return {
    run: async (script, exitCode = 0) => {
      const [end, startedAt] = [randomUUID(), performance.now()];
      const ended = new RegExp(`\\n${end} (\\d+)\\n$`);
      // A program that reads its input must not read the next command.
      const typed = `trap 'failed=$?' ERR\nfailed=0\n{\n${script}\n} < /dev/null 2>&1\n`;
      shell.stdin.write(`${typed}last=$?\ntrap - ERR\necho; echo ${end} $((failed ? failed : last))\n`);
      let output = "";
      while (!ended.test(output)) output += (await once(shell.stdout, "data"))[0];
      const [line, code] = ended.exec(output)!;
      output = output.slice(0, -line.length);
      if (Number(code) !== exitCode) throw new Error(`Exit code ${code}, not ${exitCode}, of:\n${script}\n${output}`);
      return { output, seconds: (performance.now() - startedAt) / 1000 };
    },
    close: async () => {
      const ended = once(shell, "exit");
      shell.stdin.end();
      await ended;
    },
  };
}
