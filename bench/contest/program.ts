import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "../free-port.ts";
import type { Scratch } from "../scratch.ts";
import type { Dialect } from "./work.ts";

/** A server under load, in a process of its own. */
export type Contestant = {
  readonly name: string;
  readonly base: URL;
  readonly dialect: Dialect;
  readonly pid: number;
  stop(): Promise<void>;
};

/** Who may take part. */
export type Entrant = {
  readonly name: string;
  readonly isInstalled: boolean;
  start(scratch: Scratch): Promise<Contestant>;
};

type Program = {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  /** Nothing else of this process's environment gets there, apart from PATH. */
  readonly env: (port: string) => Readonly<Record<string, string>>;
  readonly dialect: Dialect;
  /** Where the addresses of its dialect begin. */
  readonly prefix: string;
};

/** Answering when this resolves. */
export async function startProgram({ name, command, args, env, dialect, prefix }: Program): Promise<Contestant> {
  const port = String(await freePort());
  const { PATH = "" } = process.env;
  const child = spawn(command, args, { env: { PATH, ...env(port) }, stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  child.stderr.on("data", (chunk) => (said = (said + chunk).slice(-2_000)));
  const ended = once(child, "exit");
  const base = new URL(prefix, `http://127.0.0.1:${port}`);
  while (!(await isReady(base))) {
    if (child.exitCode !== null || child.signalCode !== null) throw new Error(`${name} ended:\n${said}`);
    await sleep(50);
  }
  return { name, base, dialect, pid: child.pid!, stop: () => stop(child, ended) };
}

async function stop(child: ChildProcess, ended: Promise<unknown>): Promise<void> {
  child.kill("SIGTERM");
  await ended;
}

/** Some listen before they can answer, and say 503 meanwhile. */
async function isReady(base: URL): Promise<boolean> {
  const answer = await fetch(base, { method: "HEAD" }).catch(() => null);
  return answer !== null && answer.status !== 503;
}
