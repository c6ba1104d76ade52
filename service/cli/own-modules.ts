import { readFileSync } from "node:fs";
import { registerHooks } from "node:module";
import { join, sep } from "node:path";
import { pathToFileURL } from "node:url";

type PackageDescription = { readonly imports: Readonly<Record<string, string>> };

const CODE = /\.[jt]s$/;

/**
 * Finds the modules of this package by their names alone. Node would look for the nearest `package.json` and parse it anew
 * for each of 3,000 imports, a fifth of the processor time until all modules are loaded.
 */
export function findOwnModulesByName(root: string): void {
  const { imports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as PackageDescription;
  const base = pathToFileURL(root + sep).href;
  const dependencies = new URL("node_modules/", base).href;
  const isOwn = (url: string | undefined) => url?.startsWith(base) === true && !url.startsWith(dependencies);
  registerHooks({
    resolve(name, context, next) {
      const target = name.startsWith(".") ? name : imports[name];
      if (!target || !CODE.test(target) || !isOwn(context.parentURL)) return next(name, context);
      const url = new URL(target, name === target ? context.parentURL : base).href;
      return { url, format: url.endsWith(".ts") ? "module-typescript" : "module", shortCircuit: true };
    },
  });
}
