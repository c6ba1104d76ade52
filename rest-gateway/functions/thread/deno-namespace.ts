import { once } from "node:events";
import fs from "node:fs";
import { hostname, release } from "node:os";
import { inspect } from "node:util";
import type { UpgradeWebSocket } from "./upgrade-web-socket.ts";

type ServeInfo = { readonly remoteAddr: { transport: "tcp"; hostname: string; port: number } };
export type ServeHandler = (request: Request, info: ServeInfo) => Response | Promise<Response>;
type ServeOptions = {
  readonly handler?: ServeHandler;
  readonly onError?: (error: unknown) => Response | Promise<Response>;
  readonly onListen?: (address: { hostname: string; port: number }) => void;
};

/** The handlers that the function has registered. */
export type Served = {
  handler: ServeHandler | null;
  onError: ServeOptions["onError"] | null;
  readonly onRegistered: () => void;
};

/** Members of Deno that this service lacks. They exist so that packages can look for them, and throw when they are used. */
export const MISSING_MEMBERS: readonly string[] = [
  ...["openKv", "Command", "run", "listen", "listenTls", "listenDatagram", "connect", "connectTls", "startTls"],
  ...["serveHttp", "dlopen", "cron", "watchFs", "createHttpClient", "kill", "addSignalListener"],
  ...["open", "openSync", "create", "symlink", "link", "resolveDns", "bench", "test", "chdir", "umask"],
];

/** Makes the part of Deno's API that functions use, on Node's API. */
export function makeDenoNamespace(
  served: Served,
  upgradeWebSocket: UpgradeWebSocket,
): Readonly<Record<string, unknown>> {
  const missing = MISSING_MEMBERS.map((name) => [name, makeMissing(name)] as const);
  return Object.freeze({
    ...Object.fromEntries(missing),
    ...fileMembers(),
    env: makeEnvironment(),
    serve: makeServe(served),
    upgradeWebSocket,
    args: [],
    build: { arch: process.arch === "arm64" ? "aarch64" : "x86_64", os: process.platform, vendor: "unknown" },
    version: { deno: "2.1.4", v8: process.versions.v8, typescript: "5.6.2" },
    pid: process.pid,
    noColor: true,
    cwd: () => process.cwd(),
    exit: (code?: number) => process.exit(code),
    inspect,
    permissions: PERMISSIONS,
    hostname,
    osRelease: release,
    execPath: () => process.execPath,
    memoryUsage: () => process.memoryUsage(),
    errors: ERRORS,
  });
}

function makeMissing(name: string) {
  // It can also be called as a constructor: `new Deno.Command()`.
  return function missing(): never {
    throw new Error(`Deno.${name} is not available in functions of this service`);
  };
}

/** Functions have all permissions. */
const GRANTED = Object.freeze({ state: "granted", partial: false, onchange: null });
const PERMISSIONS = Object.freeze({
  query: async () => GRANTED,
  querySync: () => GRANTED,
  request: async () => GRANTED,
  requestSync: () => GRANTED,
});

const ERROR_NAMES = [
  "NotFound",
  "PermissionDenied",
  "AlreadyExists",
  "InvalidData",
  "TimedOut",
  "Interrupted",
  "Http",
  "BadResource",
  "ConnectionRefused",
  "NotSupported",
  "UnexpectedEof",
];
const ERRORS = Object.fromEntries(ERROR_NAMES.map((name) => [name, { [name]: class extends Error {} }[name]!]));

function makeEnvironment() {
  const { env } = process;
  return {
    get: (name: string) => env[name],
    has: (name: string) => name in env,
    set: (name: string, value: string) => {
      env[name] = value;
    },
    delete: (name: string) => {
      delete env[name];
    },
    toObject: () => ({ ...env }),
  };
}

/** Makes `serve(handler)`, `serve(options, handler)` and `serve({ handler })`. */
function makeServe(served: Served) {
  return (first: ServeHandler | ServeOptions, second?: ServeHandler) => {
    const options = typeof first === "function" ? {} : first;
    const handler = typeof first === "function" ? first : (second ?? options.handler);
    if (typeof handler !== "function") throw new TypeError("Deno.serve requires a handler");
    served.handler = handler;
    served.onError = options.onError ?? null;
    served.onRegistered();
    const address = { transport: "tcp", hostname: "0.0.0.0", port: 0 };
    options.onListen?.(address);
    return {
      addr: address,
      finished: once(new EventTarget(), "close"),
      shutdown: async () => {},
      ref: () => {},
      unref: () => {},
    };
  };
}

type Path = string | URL;
type Recursive = { readonly recursive?: boolean };
type WriteOptions = { readonly append?: boolean; readonly create?: boolean; readonly mode?: number };

function fileMembers() {
  const { promises } = fs;
  const write = (path: Path, data: Uint8Array | string, options?: WriteOptions) =>
    promises.writeFile(path, data, toFlags(options));
  const writeSync = (path: Path, data: Uint8Array | string, options?: WriteOptions) =>
    fs.writeFileSync(path, data, toFlags(options));
  return {
    readFile: async (path: Path) => new Uint8Array(await promises.readFile(path)),
    readFileSync: (path: Path) => new Uint8Array(fs.readFileSync(path)),
    readTextFile: (path: Path) => promises.readFile(path, "utf8"),
    readTextFileSync: (path: Path) => fs.readFileSync(path, "utf8"),
    writeFile: write,
    writeFileSync: writeSync,
    writeTextFile: write,
    writeTextFileSync: writeSync,
    remove: (path: Path, options?: Recursive) => promises.rm(path, options),
    removeSync: (path: Path, options?: Recursive) => fs.rmSync(path, options),
    mkdir: async (path: Path, options?: Recursive) => void (await promises.mkdir(path, options)),
    mkdirSync: (path: Path, options?: Recursive) => void fs.mkdirSync(path, options),
    stat: async (path: Path) => toFileInfo(await promises.stat(path)),
    statSync: (path: Path) => toFileInfo(fs.statSync(path)),
    lstat: async (path: Path) => toFileInfo(await promises.lstat(path)),
    copyFile: (from: Path, to: Path) => promises.copyFile(from, to),
    rename: (from: Path, to: Path) => promises.rename(from, to),
    realPath: (path: Path) => promises.realpath(path),
    readDir: async function* (path: Path) {
      for await (const entry of await promises.opendir(path)) yield toEntry(entry);
    },
    readDirSync: (path: Path) => fs.readdirSync(path, { withFileTypes: true }).map(toEntry),
    makeTempDir: () => promises.mkdtemp("/tmp/function-"),
    makeTempFile: async () => {
      const file = `${await promises.mkdtemp("/tmp/function-")}/file`;
      await promises.writeFile(file, "");
      return file;
    },
  };
}

function toFlags({ append = false, create = true, mode }: WriteOptions = {}) {
  const { O_WRONLY, O_CREAT, O_APPEND, O_TRUNC } = fs.constants;
  const flag = O_WRONLY | (create ? O_CREAT : 0) | (append ? O_APPEND : O_TRUNC);
  return { flag: flag as unknown as string, ...(mode !== undefined && { mode }) };
}

function toEntry(entry: fs.Dirent) {
  const { name } = entry;
  return { name, isFile: entry.isFile(), isDirectory: entry.isDirectory(), isSymlink: entry.isSymbolicLink() };
}

function toFileInfo(stats: fs.Stats) {
  const { size, mode, mtime, atime, birthtime } = stats;
  const kind = { isFile: stats.isFile(), isDirectory: stats.isDirectory(), isSymlink: stats.isSymbolicLink() };
  return { ...kind, size, mode, mtime, atime, birthtime };
}
