// Measures a newcomer's first minute: from the tarball to a row that a second user sees, by the buttons of Studio in a browser.

import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempDisposable, readdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import type { Page } from "playwright-core";
import { launchBrowser } from "../test/chromium.ts";
import {
  ADA,
  askWhy,
  cell,
  changeTitle,
  createAda,
  createTasksTable,
  insertRow,
  openPage,
  viewAs,
} from "../test/studio/first-row-steps.ts";
import { verdict } from "./comparison/targets.ts";
import type { Bench } from "./measuring/kind.ts";
import { median } from "./measuring/median.ts";

const ROOT = join(import.meta.dirname, "..");
const TARGET_SECONDS = 45;
const run = promisify(execFile);

/** The seconds of each step, by its name. */
type Journey = Readonly<Record<string, number>>;

export const bench: Bench = async ({ rounds, print }) => {
  print(`newcomer: from the tarball to a row that a second user sees, ${rounds} rounds`);
  await using packed = await mkdtempDisposable(join(tmpdir(), "content-service-bench-"));
  await run("npm", ["pack", "--pack-destination", packed.path], { cwd: ROOT });
  const [tarball] = await readdir(packed.path);
  // This install fills the cache of npm, so that no network is measured.
  await using first = await mkdtempDisposable(join(tmpdir(), "content-service-bench-"));
  await install(join(packed.path, tarball!), first.path);
  const journeys: Journey[] = [];
  for (let round = 0; round < rounds; round++) journeys.push(await makeJourney(join(packed.path, tarball!)));
  const seconds = Object.fromEntries(
    Object.keys(journeys[0]!).map((step) => [step, median(journeys.map((journey) => journey[step]!))]),
  );
  for (const [step, each] of Object.entries(seconds)) print(`  ${each.toFixed(1).padStart(5)} s  ${step}`);
  const total = median(journeys.map((journey) => Object.values(journey).reduce((sum, each) => sum + each, 0)));
  const isMissed = total > TARGET_SECONDS;
  print("\n  targets");
  print(verdict(`all: ${total.toFixed(1)} s`, !isMissed, String(TARGET_SECONDS)));
  return { seconds, total, isMissed };
};

async function makeJourney(tarball: string): Promise<Journey> {
  await using folder = await mkdtempDisposable(join(tmpdir(), "content-service-bench-"));
  await using opened = new AsyncDisposableStack();
  const journey: Record<string, number> = {};
  const step = async <Result>(name: string, take: () => Promise<Result>): Promise<Result> => {
    const startedAt = performance.now();
    const result = await take();
    journey[name] = (performance.now() - startedAt) / 1_000;
    return result;
  };
  await step("npm install", () => install(tarball, folder.path));
  const command = join(folder.path, "node_modules/content-service/bin/content-service.js");
  const environment = { PATH: process.env.PATH, HOME: folder.path, PORT: "0", LOG_LEVEL: "error" };
  await step("init", () => run(process.execPath, [command, "init"], { cwd: folder.path, env: environment }));
  const service = spawn(process.execPath, [command, "dev"], {
    cwd: folder.path,
    env: environment,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = once(service, "exit");
  opened.defer(async () => {
    service.kill("SIGTERM");
    await ended;
  });
  const url = await step("dev, until it is ready", () => announcedAddress(service));
  // A full pipe would stop it.
  service.stdout.resume();
  const browser = await launchBrowser();
  opened.defer(() => browser.close());
  const page = await step("open Studio", () => openPage(browser, url, "/studio/schema"));
  await step("act as a user", () => page.getByText("Acting as Playground user").waitFor());
  await step("make a table", () => createTasksTable(page));
  await step("insert a row", () => insertRow(page, "tasks", { "title · text · required": "First light" }));
  await step("edit it", () => changeTitle(page, "First light", "Second light"));
  await step("create a second user, who sees it", () => showToAda(page, url));
  await step("ask why, and reload", () => askWhy(page, "Second light", "authenticated sees 1 of 1 rows."));
  return journey;
}

const install = (tarball: string, folder: string) =>
  run("npm", ["install", "--prefer-offline", tarball], { cwd: folder });

async function announcedAddress(service: ChildProcess): Promise<string> {
  let address = "";
  for await (const line of createInterface({ input: service.stdout! })) {
    address ||= /^ +address +(\S+)/.exec(line)?.[1] ?? "";
    if (address !== "" && line.includes("ready in")) return address;
  }
  throw new Error("The service ended before it was ready.");
}

async function showToAda(page: Page, url: string): Promise<void> {
  await createAda(page);
  await page.goto(`${url}/studio/tables/public/tasks`);
  await viewAs(page, ADA);
  await cell(page, 0, "Second light").waitFor();
}
