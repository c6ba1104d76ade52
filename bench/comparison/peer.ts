import { join } from "node:path";
import type { Scratch } from "../measuring/scratch.ts";
import { type MeasuredServer, startProgram } from "./program.ts";
import { JWT_SECRET } from "./sign-claims.ts";
import type { Dialect } from "./work.ts";

/** The best pool size for each peer: the number of concurrent callers. */
export const POOL_SIZE = "16";

const BENCH = join(import.meta.dirname, "..");

type Peer = {
  readonly name: string;
  /** The command; node by default. */
  readonly command?: string;
  /** The file, such as `peers/lite.mjs`; none for a binary. */
  readonly file?: string;
  /** The Postgres role of the peer. */
  readonly role?: string;
  /** Additional environment variables. */
  readonly env?: Readonly<Record<string, string>>;
  readonly dialect?: Dialect;
  readonly prefix?: string;
};

/** Starts a program that serves the same data from the same Postgres. */
export function startPeer(
  scratch: Scratch,
  {
    name,
    command = process.execPath,
    file,
    role = "authenticator",
    env = {},
    dialect = "handlers",
    prefix = "/",
  }: Peer,
): Promise<MeasuredServer> {
  return startProgram({
    name,
    command,
    args: file === undefined ? [] : [join(BENCH, file)],
    env: (port) => ({
      PORT: port,
      DATABASE_URL: scratch.url(role),
      JWT_SECRET,
      POOL_SIZE,
      NODE_ENV: "production",
      ...env,
    }),
    dialect,
    prefix,
  });
}
