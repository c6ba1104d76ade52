import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import vm from "node:vm";
import { parentPort, workerData } from "node:worker_threads";
import { MISSING_MEMBERS } from "./deno-namespace.ts";
import { locate, readFunctionSource } from "./function-source.ts";
import type { LogLevel, ThreadData } from "./messages.ts";
import { explainMissingModule, explainMissingPath, isPackage, type PackageImport } from "./module-hooks.ts";
import { type ImportTarget, resolveImport } from "./resolve-import.ts";
import { MODELS_HELP } from "./supabase-namespace.ts";

// The program of a thread that reads the imports of functions with V8's parser, and runs nothing.

type Problem = { readonly name: string; readonly level: LogLevel; readonly text: string };

process.emitWarning = () => {};
parentPort!.postMessage((workerData as readonly ThreadData[]).flatMap(checkFunction));

function checkFunction({ name, entry, importMap, jsx }: ThreadData): readonly Problem[] {
  const problems: Problem[] = [];
  const seen = new Set<string>();
  const waiting = [entry];
  for (let url = waiting.pop(); url !== undefined; url = waiting.pop()) {
    if (seen.has(url)) continue;
    seen.add(url);
    const file = fileURLToPath(url);
    const addProblem = (level: LogLevel, text: string) => problems.push({ name, level, text });
    const source = attempt(
      () => readFunctionSource(url!, jsx),
      (message) => addProblem("error", `${file}: ${message}`),
    );
    const imports =
      source === null
        ? []
        : (attempt(
            () => importsOf(source, file),
            (m) => addProblem("error", m),
          ) ?? []);
    const check = (specifier: string, level: LogLevel) => {
      const { next, problem } = followImport(resolveImport(specifier, importMap), url!, entry);
      if (problem !== null) addProblem(level, `${locate(url!, specifier)}: ${problem}`);
      return next;
    };
    for (const specifier of imports) {
      const next = check(specifier, "error");
      if (next !== null) waiting.push(next);
    }
    for (const specifier of lazyImportsOf(source ?? "")) check(specifier, "warn");
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

/** Returns the texts in calls of `import()`. They are only warned of, because the text may be a comment, or the call may never happen. */
function lazyImportsOf(source: string): readonly string[] {
  return [...source.matchAll(/(?<![\w.$])import\(\s*(["'])([^"'\n]+)\1\s*\)/g)].map(([, , specifier]) => specifier!);
}

/** Returns the file of the function that is imported, or the reason why the import fails. */
function followImport(target: ImportTarget, url: string, entry: string) {
  const found = (next: string | null) => ({ next, problem: null });
  if (target.kind === "refused") return { next: null, problem: target.reason };
  if (target.kind === "empty") return found(null);
  if (target.kind === "service") return { next: null, problem: target.needs && findMissing(target.needs, entry) };
  const { specifier, parent } = target;
  if (isPackage(specifier)) return { next: null, problem: findMissing(target, parent ?? url) };
  const next = new URL(specifier, parent ?? url);
  return found(next.protocol === "file:" && /\.(m?[jt]s|[jt]sx)$/.test(next.pathname) ? next.href : null);
}

/** Returns the reason why a package, or a path of it, is not found; null if it is found. */
function findMissing(required: PackageImport, parent: string): string | null {
  try {
    const url = import.meta.resolve(required.specifier, parent);
    const isThere = !url.startsWith("file:") || existsSync(fileURLToPath(url));
    return isThere ? null : explainMissingPath(required);
  } catch (error) {
    return explainMissingModule(error, required);
  }
}

/** Returns missing members, only for a warning: the text may be a comment, or a test whether the member exists. */
function missingMembers(source: string, file: string): readonly string[] {
  return source.split("\n").flatMap((line, index) =>
    [...line.matchAll(/(?<![\w.$])(?:Deno\.(\w+)|Supabase\.ai)/g)]
      .filter(([, member]) => member === undefined || MISSING_MEMBERS.includes(member))
      .filter(() => !/^\s*(\/\/|\*)/.test(line))
      .map(([text, member]) => `${file}:${index + 1}: ${text} is not available here, and ${explainMember(member)}`),
  );
}

function explainMember(member: string | undefined): string {
  return member === undefined ? MODELS_HELP : "throws when it is used";
}
