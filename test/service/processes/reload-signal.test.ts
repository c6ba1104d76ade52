import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { REPOSITORY } from "../../repository.ts";

/** Sends the signal to its own process as the module is loaded, and waits until Node has handled it. */
const signalAt = (file: string) => `data:text/javascript,
  import { registerHooks } from "node:module";
  registerHooks({
    load(url, context, next) {
      if (url.endsWith("/${file}")) {
        process.kill(process.pid, "SIGUSR1");
        console.error("sent");
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100);
      }
      return next(url, context);
    },
  });`;

const { scripts } = JSON.parse(readFileSync(join(REPOSITORY, "package.json"), "utf8")) as {
  scripts: Record<string, string>;
};
/** The arguments that a script passes to Node. */
const argumentsOf = (script: string) => scripts[script]!.replace(/^(exec )?node /, "").split(" ");

async function errorsOf(args: readonly string[], file: string): Promise<string> {
  const all = [`--import=${signalAt(file)}`, ...args, "--help"];
  const child = spawn(process.execPath, all, { cwd: REPOSITORY, env: { PATH: process.env.PATH } });
  child.stdout.resume();
  let errors = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    errors += text;
  });
  await once(child, "close");
  return errors;
}

test.each([
  ["the service", argumentsOf("start"), "service/start-service.ts"],
  ["a command", argumentsOf("database-url"), "command.ts"],
  ["the program of the package", ["bin/content-service.js", "sql"], "command.ts"],
])("%s opens no inspector on a SIGUSR1 while its modules load", async (_, args, file) => {
  expect(await errorsOf(args, file)).toBe("sent\n");
});

test("a program without a handler opens it, so that the tests above would show it", async () => {
  expect(await errorsOf(["service/cli/database-url.ts"], "command.ts")).toMatch(
    /Debugger listening|Starting inspector/,
  );
});

test("each script of npm that runs a command ignores SIGUSR1, and keeps compiled code", () => {
  const commands = Object.entries(scripts).filter(
    ([, text]) => text.includes("service/cli/") && !text.endsWith("build.ts"),
  );
  expect(commands.length).toBeGreaterThan(15);
  expect(
    commands.filter(
      ([, text]) => !/^node --disable-sigusr1 --import .\/service\/cli\/compile-cache.js service\/cli\//.test(text),
    ),
  ).toEqual([]);
});
