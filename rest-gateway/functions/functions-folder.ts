import { existsSync, readdirSync, readFileSync, statSync, watch } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { parseEnv } from "node:util";
import { parse } from "smol-toml";
import type { Config } from "#config";
import { memoize } from "#runtime";
import type { ImportMap, JsxOptions } from "./thread/messages.ts";

/** The source of a function, as its files describe it. */
export type FunctionSource = {
  readonly name: string;
  /** The file of the handler. */
  readonly file: string;
  /** The value of `verify_jwt` in config.toml. */
  readonly verifiesToken: boolean;
  readonly importMap: ImportMap | null;
  readonly jsx: JsxOptions | null;
};

export type FunctionSources = {
  readonly byName: ReadonlyMap<string, FunctionSource>;
  /** The variables that the functions read with `Deno.env`, from `.env` of the folder. */
  readonly secrets: Readonly<Record<string, string>>;
  /** Files that could not be read, for the log. */
  readonly problems: readonly string[];
};

type FunctionOptions = {
  readonly enabled?: boolean;
  readonly verify_jwt?: boolean;
  readonly entrypoint?: string;
  readonly import_map?: string;
};

/** The pattern of function names, which is Supabase's. Folders such as `_shared` contain no function. */
const NAME = /^[A-Za-z][A-Za-z0-9_-]*$/;
const ENTRIES = ["index.ts", "index.tsx", "index.js", "index.mjs", "index.jsx"];
/** The names of import maps, first in the folder of one function and then of all. */
const IMPORT_MAPS = ["deno.json", "deno.jsonc", "import_map.json"];

/** Returns FUNCTIONS_DIR, `functions` or `supabase/functions`; null if there is none. */
export function findFunctionsFolder({
  functions,
  functionsDir,
}: Pick<Config, "functions" | "functionsDir">): string | null {
  if (functions === false) return null;
  const candidates = functionsDir === null ? ["functions", "supabase/functions"] : [functionsDir];
  const folder = candidates.map((path) => resolve(path)).find(isFolder) ?? null;
  if (folder !== null || functions === null) return folder;
  throw new Error(`FUNCTIONS=true, but there is no folder ${candidates.join(" or ")}`);
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

/** Reads names, settings, import maps and secrets. A file that cannot be read is reported, and the others are used. */
export function readFunctions(folder: string): FunctionSources {
  const problems: string[] = [];
  const attempt = <T>(file: string, read: (text: string) => T): T | null => {
    if (!existsSync(file)) return null;
    try {
      return read(readFileSync(file, "utf8"));
    } catch (error) {
      problems.push(`${file} cannot be read: ${(error as Error).message.split("\n")[0]}`);
      return null;
    }
  };
  const { settings, root } = readOptions(folder, attempt);
  const readConfig = memoize((file: string): DenoConfig => attempt(file, parseDenoConfig) ?? {});
  const readMap = (file: string): ImportMap | null => {
    const { imports, importMap } = readConfig(file);
    if (imports) return { imports, base: pathToFileURL(file).href };
    return importMap ? readMap(resolve(dirname(file), importMap)) : null;
  };
  const readJsx = (file: string) => readConfig(file).compilerOptions ?? null;
  const shared = [...IMPORT_MAPS.map((name) => join(folder, name)), join(root, "deno.json")];
  const sharedMap = firstOf(shared, readMap);
  const sharedJsx = firstOf(shared, readJsx);
  const names = new Set([...foldersIn(folder), ...Object.keys(settings)]);
  const sources = [...names].flatMap((name): FunctionSource[] => {
    const { enabled, verify_jwt, entrypoint, import_map } = settings[name] ?? {};
    if (!NAME.test(name) || enabled === false) return [];
    const own = join(folder, name);
    const files = entrypoint ? [resolve(root, entrypoint)] : ENTRIES.map((entry) => join(own, entry));
    const file = files.find((each) => existsSync(each));
    if (!file) return [];
    const maps = import_map ? [resolve(root, import_map)] : IMPORT_MAPS.map((each) => join(own, each));
    return [
      {
        name,
        file,
        verifiesToken: verify_jwt !== false,
        importMap: firstOf(maps, readMap) ?? sharedMap,
        jsx: firstOf(maps, readJsx) ?? sharedJsx,
      },
    ];
  });
  return {
    byName: new Map(sources.map((source) => [source.name, source])),
    secrets: attempt(join(folder, ".env"), (text) => parseEnv(text) as Record<string, string>) ?? {},
    problems,
  };
}

function foldersIn(folder: string): readonly string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? [entry.name] : []));
}

function firstOf<T>(files: readonly string[], read: (file: string) => T | null): T | null {
  for (const file of files) {
    const found = read(file);
    if (found !== null) return found;
  }
  return null;
}

type AttemptToRead = <T>(file: string, read: (text: string) => T) => T | null;

/** The folders that may contain the config.toml of a folder of functions. */
function foldersOfOptions(folder: string): readonly [string, string] {
  const project = dirname(folder);
  return [project, join(project, "supabase")];
}

/** Reads `[functions.name]` of config.toml, whose paths are relative to its folder. */
function readOptions(folder: string, attempt: AttemptToRead) {
  const folders = foldersOfOptions(folder);
  for (const root of folders) {
    const settings = attempt(join(root, "config.toml"), (text) => parse(text).functions ?? {});
    if (settings !== null) return { settings: settings as Readonly<Record<string, FunctionOptions>>, root };
  }
  return { settings: {}, root: folders[0] };
}

/** Calls back after each change of what readFunctions() reads, until the returned function is called. */
export function watchFunctions(folder: string, events: WatchEvents): () => void {
  const watchers = [watch(folder, { recursive: true, persistent: false }, () => events.onChange())];
  const stop = () => {
    for (const watcher of watchers) watcher.close();
  };
  try {
    for (const each of foldersOfOptions(folder).filter(isFolder)) {
      watchers.push(watch(each, { persistent: false }, (_event, name) => isOptionName(name) && events.onChange()));
    }
  } catch (error) {
    stop();
    throw error;
  }
  for (const watcher of watchers) watcher.on("error", events.onError);
  return stop;
}

type WatchEvents = { readonly onChange: () => void; readonly onError: (error: Error) => void };

/** `supabase` may be a folder that is made while the service runs. */
function isOptionName(name: string | null): boolean {
  return name === null || ["config.toml", "deno.json", "supabase"].includes(name);
}

type DenoConfig = {
  readonly imports?: Readonly<Record<string, string>>;
  /** The path of a file with the imports. */
  readonly importMap?: string;
  readonly compilerOptions?: JsxOptions;
};

/** Parses a configuration with comments, as in deno.jsonc. */
function parseDenoConfig(text: string): DenoConfig {
  return JSON.parse(withoutComments(text)) as DenoConfig;
}

/** Removes comments. Strings are matched first, so that `//` in them is kept. */
function withoutComments(text: string): string {
  return text
    .replaceAll(/("(?:[^"\\]|\\.)*")|\/\/[^\n]*|\/\*[\s\S]*?\*\//g, (_match, string = "") => string)
    .replaceAll(/("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])/g, (_match, string = "") => string);
}
