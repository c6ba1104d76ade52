import { readFileSync } from "node:fs";
import { enableCompileCache, registerHooks } from "node:module";
import { join, sep } from "node:path";
import { pathToFileURL } from "node:url";
import { setFlagsFromString } from "node:v8";

const CODE = /\.[jt]s$/;

/**
 * Keeps compiled code and stripped types for the next start, also that of workers, which takes 40 % less processor time
 * then, and half for a command. In the folder of the installed packages, because others must not be able to write code there;
 * without effect if this user may not write there either. Loaded before all modules of the service: those that are loaded
 * before it are compiled again at each start. JavaScript, so that Node need not load what strips types, 20 MB, for this file.
 */
const [root] = import.meta.dirname.split(`${sep}node_modules${sep}`);
const isInstalled = root !== import.meta.dirname;
const packages = join(isInstalled ? root : join(import.meta.dirname, "../.."), "node_modules");
process.env.NODE_COMPILE_CACHE ??= join(packages, ".cache/content-service");
// While modules are loaded, which would let V8's young generation grow to 130 MB; a service that rests needs 2 of them. Here, because V8
// accepts only code that was compiled with the same options: those of commands, of the service and of workers.
setFlagsFromString("--semi-space-growth-factor=1");
enableCompileCache(process.env.NODE_COMPILE_CACHE);
findOwnModulesByName(join(import.meta.dirname, "../.."));

/**
 * Finds the modules of this package by their names alone. Node would look for the nearest `package.json` and parse it anew
 * for each of 3,000 imports, a fifth of the processor time until all modules are loaded.
 */
function findOwnModulesByName(root) {
  const { imports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const base = pathToFileURL(root + sep).href;
  const dependencies = new URL("node_modules/", base).href;
  const isOwn = (url) => url?.startsWith(base) === true && !url.startsWith(dependencies);
  registerHooks({
    resolve(name, context, next) {
      const target = name.startsWith(".") ? name : imports[name];
      if (!target || !CODE.test(target) || !isOwn(context.parentURL)) return next(name, context);
      const url = new URL(target, name === target ? context.parentURL : base).href;
      return { url, format: url.endsWith(".ts") ? "module-typescript" : "module", shortCircuit: true };
    },
  });
}
