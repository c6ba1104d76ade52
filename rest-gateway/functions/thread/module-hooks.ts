import { registerHooks } from "node:module";
import { DENO_MODULES } from "./deno-imports.ts";
import { isCompiled, locate, readFunctionSource } from "./function-source.ts";
import type { ThreadData } from "./messages.ts";
import { resolveImport } from "./resolve-import.ts";

/** Packages have modules of their own for Deno, which use `fetch` and streams of the web instead of Node's. */
const DENO_CONDITION = "deno";
const EMPTY_MODULE = "data:text/javascript,export {}";

/** Makes imports of this thread behave as in Deno, as far as that needs no download. */
export function installModuleHooks({ importMap, jsx, entry }: Pick<ThreadData, "importMap" | "jsx" | "entry">): void {
  registerHooks({
    resolve(specifier, given, next) {
      const { parentURL } = given;
      // A module of the service for a package imports the one that the project has installed.
      if (parentURL?.startsWith(DENO_MODULES))
        return next(specifier, parentURL.endsWith(".mjs") ? { ...given, parentURL: entry } : given);
      const context = { ...given, conditions: [DENO_CONDITION, ...given.conditions] };
      // Packages resolve their own imports.
      if (parentURL === undefined || parentURL.includes("/node_modules/")) return next(specifier, context);
      const target = resolveImport(specifier, importMap);
      if (target.kind === "empty") return { url: EMPTY_MODULE, format: "module", shortCircuit: true };
      if (target.kind === "service") return { url: target.url, shortCircuit: true };
      if (target.kind === "refused") throw new Error(`${locate(parentURL, specifier)}: ${target.reason}`);
      try {
        return next(target.specifier, target.parent ? { ...context, parentURL: target.parent } : context);
      } catch (error) {
        const reason = explainMissingModule(error, target);
        throw reason === null ? error : new Error(`${locate(parentURL, specifier)}: ${reason}`);
      }
    },
    load(url, context, next) {
      if (!url.startsWith("file:") || !isCompiled(url) || url.includes("/node_modules/")) return next(url, context);
      return { format: "module", source: readFunctionSource(url, jsx), shortCircuit: true };
    },
  });
}

export function isPackage(specifier: string): boolean {
  return !/^([./#]|\w+:)/.test(specifier);
}

function packageOf(specifier: string): string {
  return specifier.split("/", specifier.startsWith("@") ? 2 : 1).join("/");
}

export type PackageImport = { readonly specifier: string; readonly install: string | null };

/** Explains why Node does not find a package or a path of it; null if the error has another reason. */
export function explainMissingModule(error: unknown, required: PackageImport): string | null {
  const { specifier, install } = required;
  if (!isPackage(specifier)) return null;
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === "ERR_PACKAGE_PATH_NOT_EXPORTED") return explainMissingPath(required);
  if (code !== "ERR_MODULE_NOT_FOUND") return null;
  if (!message.startsWith("Cannot find package")) return explainMissingPath(required);
  const name = packageOf(specifier);
  return `the package ${name} is not installed: ${install ?? `npm install ${name}`}`;
}

/** Explains that the installed version of a package lacks a module. */
export function explainMissingPath({ specifier, install }: PackageImport): string {
  const name = packageOf(specifier);
  const path = specifier.slice(name.length + 1) || "main module";
  return `the installed version of ${name} has no ${path}: ${install ?? `npm install ${name}@latest`}`;
}
