import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "../measuring/free-port.ts";
import type { Scratch } from "../measuring/scratch.ts";
import type { Dialect } from "./work.ts";

/** A server under load, in a separate process. */
export type MeasuredServer = {
  readonly name: string;
  readonly base: URL;
  readonly dialect: Dialect;
  readonly pid: number;
  /** The signal or exit code, and the end of stderr; null while it runs. */
  ending(): string | null;
  /** Stops the server, with SIGTERM by default. */
  stop(signal?: NodeJS.Signals): Promise<void>;
};

/** A server that can be started for a comparison. */
export type ServerLauncher = {
  readonly name: string;
  readonly isInstalled: boolean;
  /** The command that installs the peer; by default the one for all peers. */
  readonly installation?: string;
  start(scratch: Scratch): Promise<MeasuredServer>;
};

export type Program = {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  /** The environment of the process, besides PATH. */
  readonly env: (port: string) => Readonly<Record<string, string>>;
  readonly dialect: Dialect;
  /** The path prefix of the server's dialect. */
  readonly prefix: string;
  /** A pipe that is read, an unread pipe, or an open file. */
  readonly stderr?: "read" | "unread" | number;
  /** After this time the server is used even if it is not ready. Default: no limit. */
  readonly readyWithinSeconds?: number;
};

/** A longer response counts as missing. */
const LONGEST_ANSWER_MS = 5_000;

/** Resolves when the server responds. */
export async function startProgram(program: Program): Promise<MeasuredServer> {
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

/** Some servers listen before they are ready, and respond with 503 until then. */
async function isReady(base: URL): Promise<boolean> {
  const answer = await fetch(base, { method: "HEAD", signal: AbortSignal.timeout(LONGEST_ANSWER_MS) }).catch(
    () => null,
  );
  return answer !== null && answer.status !== 503;
}
