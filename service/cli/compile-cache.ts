import { enableCompileCache } from "node:module";
import { join, sep } from "node:path";
import { fixYoungGeneration } from "../processes/young-generation.ts";
import { findOwnModulesByName } from "./own-modules.ts";

/**
 * Keeps compiled code and stripped types for the next start, also that of workers, which takes 40 % less processor time
 * then, and half for a command. In the folder of the installed packages, because others must not be able to write code there;
 * without effect if this user may not write there either. Loaded before all modules of the service: those that are loaded
 * before it are compiled again at each start.
 */
const [root] = import.meta.dirname.split(`${sep}node_modules${sep}`);
const isInstalled = root !== import.meta.dirname;
const packages = join(isInstalled ? root! : join(import.meta.dirname, "../.."), "node_modules");
process.env.NODE_COMPILE_CACHE ??= join(packages, ".cache/content-service");
// Here, because V8 accepts only code that was compiled with the same options: those of commands, of the service and of workers.
fixYoungGeneration();
enableCompileCache(process.env.NODE_COMPILE_CACHE);
findOwnModulesByName(join(import.meta.dirname, "../.."));
