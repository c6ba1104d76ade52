import { execFileSync } from "node:child_process";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { launchBrowser } from "../chromium.ts";
import { REPOSITORY } from "../repository.ts";
import { ADDRESS } from "./five-minutes.ts";
import { walkProject } from "./project-walk.ts";
import { describeMachine, publishedOutput, secondsSince, walkSection } from "./walk-page.ts";

// Packs the service, runs the commands of docs/projects.md in an empty folder, and records the output in docs/walk-project.md.

const TITLES = ["Install and create the project", "Start", "Create a table", "Insert a row"];

const [folder, packed] = await Promise.all(
  ["walk", "package"].map((name) => mkdtemp(join(tmpdir(), `content-service-${name}-`))),
);
try {
  execFileSync("npm", ["pack", "--silent", "--pack-destination", packed!], { cwd: REPOSITORY });
  const [tarball] = await readdir(packed!);
  await writeFile(join(REPOSITORY, "docs/walk-project.md"), await record(join(packed!, tarball!)));
} finally {
  for (const each of [folder!, packed!]) await rm(each, { recursive: true, force: true, maxRetries: 10 });
}

async function record(tarball: string): Promise<string> {
  const machine = describeMachine();
  const page = await readFile(join(REPOSITORY, "docs/projects.md"), "utf8");
  // npm's notices about this machine do not belong in the record.
  const environment = { ...process.env, npm_config_loglevel: "error", npm_config_fund: "false" };
  let [browsed, browsedFor] = ["", 0];
  const steps = await walkProject(page, { folder: folder!, tarball, environment }, async (url) => {
    const browser = await launchBrowser();
    try {
      const tab = await browser.newPage();
      const openedAt = performance.now();
      await tab.goto(`${url}/api/v1/tasks`);
      const text = (await tab.textContent("body"))!;
      browsedFor = secondsSince(openedAt);
      browsed = walkSection("Open the row in a browser", browsedFor, "text", `${ADDRESS}/api/v1/tasks\n`, text.trim());
    } finally {
      await browser.close();
    }
  });
  const total = steps.reduce((sum, { seconds }) => sum + seconds, browsedFor);
  const sections = steps.map(({ commands, output, seconds }, index) =>
    walkSection(TITLES[index]!, seconds, "sh", commands, publishedOutput(output, folder!, "~")),
  );
  return [heading(total, machine), ...sections, browsed].join("\n");
}

function heading(seconds: number, machine: string): string {
  return `# Recorded first row

The commands of [Projects](projects.md#first-row) with their real output and duration, ${seconds.toFixed(0)} seconds in all, to the first row in a browser.
Written by \`node_modules/.bin/node test/docs/record-project-walk.ts\`. Tokens are shortened; npm's echo and JSON log lines are omitted. ${machine}
`;
}
