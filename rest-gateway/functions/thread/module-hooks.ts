import { registerHooks } from "node:module";
import { locate, readFunctionSource } from "./function-source.ts";
import type { ImportMap } from "./messages.ts";
import { resolveImport } from "./resolve-import.ts";

const EMPTY_MODULE = "data:text/javascript,export {}";

/** Makes imports of this thread behave as in Deno, as far as that needs no download. */
export function installModuleHooks(map: ImportMap | null): void {
  registerHooks({
    resolve(specifier, context, next) {
      const { parentURL } = context;
      // Packages resolve their own imports.
      if (parentURL === undefined || parentURL.includes("/node_modules/")) return next(specifier, context);
      const target = resolveImport(specifier, map);
      if (target.kind === "empty") return { url: EMPTY_MODULE, format: "module", shortCircuit: true };
      if (target.kind === "refused") throw new Error(`${locate(parentURL, specifier)}: ${target.reason}`);
      try {
        return next(target.specifier, target.parent ? { ...context, parentURL: target.parent } : context);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "ERR_MODULE_NOT_FOUND" || !isPackage(target.specifier))
          throw error;
        throw new Error(`${locate(parentURL, specifier)}: ${explainMissingPackage(target.specifier)}`);
      }
    },
    load(url, context, next) {
      if (!/^file:.*\.m?ts$/.test(url) || url.includes("/node_modules/")) return next(url, context);
      return { format: "module", source: readFunctionSource(url), shortCircuit: true };
    },
  });
}

export function isPackage(specifier: string): boolean {
  return !/^([./#]|\w+:)/.test(specifier);
}

export function packageOf(specifier: string): string {
  return specifier.split("/", specifier.startsWith("@") ? 2 : 1).join("/");
}

export function explainMissingPackage(specifier: string): string {
  const name = packageOf(specifier);
  return `the package ${name} is not installed: npm install ${name}`;
}
