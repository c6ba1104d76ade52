import { once } from "node:events";
import fs from "node:fs";
import { inspect } from "node:util";

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
  ...["serveHttp", "dlopen", "cron", "watchFs", "createHttpClient", "upgradeWebSocket", "kill", "addSignalListener"],
  ...["open", "openSync", "create", "symlink", "link", "resolveDns", "bench", "test", "chdir", "umask"],
];

/** Makes the part of Deno's API that functions use, on Node's API. */
export function makeDenoNamespace(served: Served): Readonly<Record<string, unknown>> {
  const missing = MISSING_MEMBERS.map((name) => [name, makeMissing(name)] as const);
  return Object.freeze({
    ...Object.fromEntries(missing),
    ...fileMembers(),
    env: makeEnvironment(),
    serve: makeServe(served),
    args: [],
    build: { arch: process.arch === "arm64" ? "aarch64" : "x86_64", os: process.platform, vendor: "unknown" },
    version: { deno: "2.1.4", v8: process.versions.v8, typescript: "5.6.2" },
    pid: process.pid,
    noColor: true,
    cwd: () => process.cwd(),
    exit: (code?: number) => process.exit(code),
    inspect,
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

const ERROR_NAMES = ["NotFound", "PermissionDenied", "AlreadyExists", "InvalidData", "TimedOut", "Interrupted", "Http"];
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

function fileMembers() {
  const { promises } = fs;
  return {
    readFile: async (path: string | URL) => new Uint8Array(await promises.readFile(path)),
    readFileSync: (path: string | URL) => new Uint8Array(fs.readFileSync(path)),
    readTextFile: (path: string | URL) => promises.readFile(path, "utf8"),
    readTextFileSync: (path: string | URL) => fs.readFileSync(path, "utf8"),
    writeFile: (path: string | URL, data: Uint8Array) => promises.writeFile(path, data),
    writeTextFile: (path: string | URL, text: string) => promises.writeFile(path, text),
    writeTextFileSync: (path: string | URL, text: string) => fs.writeFileSync(path, text),
    remove: (path: string | URL, options?: { readonly recursive?: boolean }) => promises.rm(path, options),
    mkdir: (path: string | URL, options?: { readonly recursive?: boolean }) => promises.mkdir(path, options),
    stat: async (path: string | URL) => toFileInfo(await promises.stat(path)),
    makeTempDir: () => promises.mkdtemp("/tmp/function-"),
  };
}

function toFileInfo(stats: fs.Stats) {
  return { isFile: stats.isFile(), isDirectory: stats.isDirectory(), size: stats.size, mtime: stats.mtime };
}
