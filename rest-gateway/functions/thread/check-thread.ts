import { existsSync } from "node:fs";
import { createRequire, isBuiltin } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import vm from "node:vm";
import { parentPort, workerData } from "node:worker_threads";
import { MISSING_MEMBERS } from "./deno-namespace.ts";
import { locate, readFunctionSource } from "./function-source.ts";
import type { LogLevel, ThreadData } from "./messages.ts";
import { explainMissingPackage, isPackage, packageOf } from "./module-hooks.ts";
import { resolveImport } from "./resolve-import.ts";

// The program of a thread that reads the imports of functions with V8's parser, and runs nothing.

type Problem = { readonly name: string; readonly level: LogLevel; readonly text: string };

process.emitWarning = () => {};
parentPort!.postMessage((workerData as readonly ThreadData[]).flatMap(checkFunction));

function checkFunction({ name, entry, importMap }: ThreadData): readonly Problem[] {
  const problems: Problem[] = [];
  const seen = new Set<string>();
  const waiting = [entry];
  for (let url = waiting.pop(); url !== undefined; url = waiting.pop()) {
    if (seen.has(url)) continue;
    seen.add(url);
    const file = fileURLToPath(url);
    const addProblem = (level: LogLevel, text: string) => problems.push({ name, level, text });
    const source = attempt(
      () => readFunctionSource(url!),
      (message) => addProblem("error", `${file}: ${message}`),
    );
    const imports =
      source === null
        ? []
        : (attempt(
            () => importsOf(source, file),
            (m) => addProblem("error", m),
          ) ?? []);
    for (const specifier of imports) {
      const target = resolveImport(specifier, importMap);
      if (target.kind === "refused") addProblem("error", `${locate(url, specifier)}: ${target.reason}`);
      if (target.kind !== "module") continue;
      const parent = target.parent ?? url;
      if (!isPackage(target.specifier)) {
        const next = new URL(target.specifier, parent);
        if (next.protocol === "file:" && /\.m?[jt]s$/.test(next.pathname)) waiting.push(next.href);
      } else if (!isBuiltin(target.specifier) && !isInstalled(target.specifier, parent))
        addProblem("error", `${locate(url, specifier)}: ${explainMissingPackage(target.specifier)}`);
    }
    for (const text of missingMembers(source ?? "", file)) addProblem("warn", text);
  }
  return problems;
}

function attempt<T>(work: () => T, report: (message: string) => void): T | null {
  try {
    return work();
  } catch (error) {
    report((error as Error).message);
    return null;
  }
}

function importsOf(source: string, file: string): readonly string[] {
  try {
    return new vm.SourceTextModule(source, { identifier: file }).moduleRequests.map(({ specifier }) => specifier);
  } catch (error) {
    // The first line of the stack is the place.
    const { message, stack = "" } = error as Error;
    throw new Error(`${stack.split("\n", 1)[0]}: ${message}`);
  }
}

function isInstalled(specifier: string, parent: string): boolean {
  const folders = createRequire(parent).resolve.paths(specifier) ?? [];
  return folders.some((folder) => existsSync(join(folder, packageOf(specifier), "package.json")));
}

/** Returns missing members, only for a warning: the text may be a comment, or a test whether the member exists. */
function missingMembers(source: string, file: string): readonly string[] {
  return source
    .split("\n")
    .flatMap((line, index) =>
      [...line.matchAll(/(?<![\w.$])Deno\.(\w+)/g)]
        .filter(([, member]) => MISSING_MEMBERS.includes(member!) && !/^\s*(\/\/|\*)/.test(line))
        .map(([, member]) => `${file}:${index + 1}: Deno.${member} is not available here, and throws when it is used`),
    );
}
