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
  /** The signal or the exit code that it ended with, and the end of what it wrote to stderr; null while it runs. */
  ending(): string | null;
  /** With SIGTERM, where nothing else is said. */
  stop(signal?: NodeJS.Signals): Promise<void>;
};

/** Who may take part. */
export type Entrant = {
  readonly name: string;
  readonly isInstalled: boolean;
  start(scratch: Scratch): Promise<Contestant>;
};

export type Program = {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  /** Nothing else of this process's environment gets there, apart from PATH. */
  readonly env: (port: string) => Readonly<Record<string, string>>;
  readonly dialect: Dialect;
  /** Where the addresses of its dialect begin. */
  readonly prefix: string;
  /** A pipe that is read, one that nobody reads, or an open file. */
  readonly stderr?: "read" | "unread" | number;
  /** One that is not ready after so many seconds is taken as it is. Absent: it is waited for. */
  readonly readyWithinSeconds?: number;
};

/** An answer that takes longer is none. */
const LONGEST_ANSWER_MS = 5_000;

/** Answering when this resolves. */
export async function startProgram(program: Program): Promise<Contestant> {
  const { name, command, args, env, dialect, prefix, stderr = "read" } = program;
  const latest = performance.now() + 1_000 * (program.readyWithinSeconds ?? Number.POSITIVE_INFINITY);
  const port = String(await freePort());
  const { PATH = "" } = process.env;
  const sink = typeof stderr === "number" ? stderr : "pipe";
  const child = spawn(command, args, { env: { PATH, ...env(port) }, stdio: ["ignore", "ignore", sink] });
  let said = "";
  if (stderr === "read") child.stderr!.on("data", (chunk) => (said = (said + chunk).slice(-2_000)));
  const ended = once(child, "exit");
  const ending = () =>
    child.exitCode === null && child.signalCode === null ? null : `${child.signalCode ?? child.exitCode}\n${said}`;
  const base = new URL(prefix, `http://127.0.0.1:${port}`);
  while (!(await isReady(base)) && performance.now() < latest) {
    if (ending() !== null) throw new Error(`${name} ended with ${ending()}`);
    await sleep(50);
  }
  return { name, base, dialect, pid: child.pid!, ending, stop: (signal = "SIGTERM") => stop(child, ended, signal) };
}

async function stop(child: ChildProcess, ended: Promise<unknown>, signal: NodeJS.Signals): Promise<void> {
  child.kill(signal);
  await ended;
}

/** Some listen before they can answer, and say 503 meanwhile. */
async function isReady(base: URL): Promise<boolean> {
  const answer = await fetch(base, { method: "HEAD", signal: AbortSignal.timeout(LONGEST_ANSWER_MS) }).catch(
    () => null,
  );
  return answer !== null && answer.status !== 503;
}
