import { spawn } from "node:child_process";
import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startReady, stopped } from "../program.ts";
import { REPOSITORY, repositoryFiles } from "../repository.ts";
import { ADDRESS, readFiveMinutes } from "./five-minutes.ts";
import { linesUntil } from "./lines-until.ts";
import { openTerminal } from "./terminal.ts";
import { describeMachine, publishedOutput, secondsSince, walkSection } from "./walk-page.ts";

// Runs the README's five minutes in a folder that contains only the repository's files, and records the output in docs/walk.md.

const RECORD = join(REPOSITORY, "docs/walk.md");

const folder = await mkdtemp(join(tmpdir(), "content-service-walk-"));
try {
  for (const file of repositoryFiles()) {
    await cp(join(REPOSITORY, file), join(folder, file), { verbatimSymlinks: true });
  }
  await writeFile(RECORD, await walk());
} finally {
  await rm(folder, { recursive: true, force: true });
}

async function walk(): Promise<string> {
  // npm's notices about this machine do not belong in the record.
  const environment = { ...process.env, npm_config_loglevel: "error", npm_config_fund: "false" };
  const steps = readFiveMinutes(await readFile(join(folder, "README.md"), "utf8"));
  const record = [heading()];
  const terminal = openTerminal({ folder, environment });

  const installed = await terminal.run("npm ci");
  record.push(walkSection("Install", installed.seconds, "sh", "npm ci\n", shown(installed.output)));

  const startedAt = performance.now();
  const service = await startReady({ ...environment, PORT: "0" }, { root: folder });
  const atService = (text: string) => text.replaceAll(ADDRESS, service.url);
  const asWritten = (text: string) => shown(text.replaceAll(service.url, ADDRESS));
  const typeIn = async (title: string, script: string) => {
    const { output, seconds } = await terminal.run(atService(script));
    record.push(walkSection(title, seconds, "sh", script, asWritten(output)));
  };
  try {
    record.push(
      walkSection("Start", secondsSince(startedAt), "sh", "npm start\n", asWritten(service.printed().trimEnd())),
    );
    await typeIn("Create a user and log in", steps.signIn);
    await typeIn("Create an article", steps.write);
    await typeIn("Read the article", steps.read);

    await writeFile(join(folder, "watch.mjs"), atService(steps.watcher));
    const key = (await terminal.run("echo $KEY")).output.trim();
    const watcher = spawn(process.execPath, ["watch.mjs"], {
      cwd: folder,
      env: { ...environment, KEY: key },
      stdio: ["ignore", "pipe", "inherit"],
    });
    const arrival = linesUntil(watcher, /^INSERT/);
    await linesUntil(watcher, /SUBSCRIBED/);
    const writtenAt = performance.now();
    await terminal.run(atService(steps.write));
    record.push(
      walkSection(
        "Subscribe to changes, and create the article again",
        secondsSince(writtenAt),
        "js",
        steps.watcher,
        (await arrival).join("\n"),
      ),
    );
    watcher.kill();

    await typeIn("Add a table", steps.addTable);
  } finally {
    await terminal.close();
    await stopped(service, "SIGINT");
  }
  return record.join("\n");
}

function heading(): string {
  return `# Recorded walk-through

The commands of the [README](../README.md#five-minutes) with their real output and duration, written by \`node_modules/.bin/node
test/docs/record-walk.ts\`. Tokens and keys are shortened; npm's echo and JSON log lines are omitted. ${describeMachine()}
`;
}

function shown(output: string): string {
  return publishedOutput(output, folder, "~/content-service");
}
