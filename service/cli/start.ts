import { enableCompileCache } from "node:module";
import { join, sep } from "node:path";

// Imports no module of the service: those that are loaded before the cache is enabled are compiled again at each start.
cacheCompiledCode(process.env);
await import("../start-service.ts");

/**
 * Keeps compiled code and stripped types for the next start, also that of workers, which takes 40 % less processor time
 * then. In the folder of the installed packages, because others must not be able to write code there; without effect if
 * this user may not write there either.
 */
function cacheCompiledCode(environment: NodeJS.ProcessEnv): void {
  const [root] = import.meta.dirname.split(`${sep}node_modules${sep}`);
  const isInstalled = root !== import.meta.dirname;
  const packages = join(isInstalled ? root! : join(import.meta.dirname, "../.."), "node_modules");
  environment.NODE_COMPILE_CACHE ??= join(packages, ".cache/content-service");
  enableCompileCache(environment.NODE_COMPILE_CACHE);
}
