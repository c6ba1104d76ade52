import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { extname, join } from "node:path";
import { withClient } from "../with-client.ts";
import { committedMigrations, MIGRATIONS_FOLDER } from "./history.ts";
import { refuseOldServer, refuseOtherLetters, refuseOtherQuotes } from "./unfit.ts";

export type MigrateCommand =
  | { readonly name: "migrate" }
  | { readonly name: "watch"; readonly once: boolean }
  | { readonly name: "commit"; readonly message: string }
  | { readonly name: "uncommit" }
  | { readonly name: "reset" };

export type MigrateSettings = {
  /** The database's owner. */
  readonly url: string;
  /** A scratch database of the same server, for commit. */
  readonly shadowUrl: string;
  /** A database that always exists, to create and drop the others from. */
  readonly rootUrl: string;
  readonly folder?: string;
};

/** What the child process is sent. */
export type MigrateJob = { readonly command: MigrateCommand; readonly settings: Required<MigrateSettings> };

/** With the ending that this file has: it may have been built. */
const RUNNER = join(import.meta.dirname, `runner${extname(import.meta.filename)}`);
/** Where packages were when Postgres refused: no help to who wrote the SQL. */
const INNER_CALLS = /^ +at .*(?:node_modules|node:internal).*\n/gm;
/** One gateway migrates, the others wait for it: graphile-migrate itself takes no lock. */
const LOCK = 7_446_309;

/** Runs graphile-migrate and returns what it said; its words are the error's message when it fails. */
export async function runMigrations(command: MigrateCommand, settings: MigrateSettings): Promise<string> {
  if (command.name !== "uncommit") await committedMigrations(settings.folder);
  if (command.name === "reset") return runChild(command, settings);
  return withClient(settings.url, async (client) => {
    await client.query("select pg_advisory_lock($1)", [LOCK]);
    await refuseOldServer(client);
    await refuseOtherLetters(client);
    await refuseOtherQuotes(client);
    return runChild(command, settings);
  });
}

async function runChild(command: MigrateCommand, settings: MigrateSettings): Promise<string> {
  let output = "";
  const child = startRunner({ command, settings }, (text) => (output += text));
  const [code] = await once(child, "close");
  if (code !== 0) throw new Error(`npm run migrate -- ${command.name} failed:\n${output.trim()}`);
  return output.trim();
}

export type WatchedMigrations = { stop(): Promise<void> };

/** Applies the chapter in `current/` at each change of its files, until told to stop. */
export function watchMigrations(settings: MigrateSettings, tell: (line: string) => void): WatchedMigrations {
  const child = startRunner({ command: { name: "watch", once: false }, settings }, (text) => tell(text.trimEnd()));
  return {
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill("SIGTERM");
      await once(child, "close");
    },
  };
}

type Job = { readonly command: MigrateCommand; readonly settings: MigrateSettings };

/**
 * In a process of its own: graphile-migrate ends the whole process when one of its idle connections is lost.
 * The connection strings travel by a message, where no process list shows them.
 */
function startRunner({ command, settings }: Job, tell: (text: string) => void): ChildProcess {
  const job: MigrateJob = { command, settings: { folder: MIGRATIONS_FOLDER, ...settings } };
  const child = fork(RUNNER, { execArgv: [], stdio: ["ignore", "pipe", "pipe", "ipc"] });
  for (const stream of [child.stdout!, child.stderr!]) {
    stream.on("data", (chunk) => tell(String(chunk).replace(INNER_CALLS, "")));
  }
  child.send(job);
  return child;
}
