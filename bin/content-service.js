#!/usr/bin/env node
// JavaScript, and of old syntax: a Node that is too old for the rest must still be able to read it and hand over.
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";

const NEEDED = 24;
const [, , ...words] = process.argv;

// Without a handler Node opens its inspector, by which any user of this machine could run code here.
process.on("SIGUSR1", () => {});
endWithShell();
if (words[0] === "--version") {
  console.log(JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")).version);
} else if (Number(process.versions.node.split(".")[0]) >= NEEDED) {
  await import(moduleOf("compile-cache", "js"));
  await import(moduleOf("content-service", "ts"));
} else {
  const node = nodeOfPackage();
  if (node === null) {
    console.error(`content-service needs Node ${NEEDED} or newer; this is ${process.versions.node}.`);
    process.exit(1);
  }
  const child = spawn(node, [import.meta.filename ?? new URL(import.meta.url).pathname, ...words], {
    stdio: "inherit",
  });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP", "SIGUSR2"]) process.on(signal, () => child.kill(signal));
  child.on("exit", (code, signal) => process.exit(code ?? (signal ? 1 : 0)));
}

/** npm starts us by a shell, which dies of a signal that npm passes on and tells nobody: its end is the signal. */
function endWithShell() {
  if (process.env.npm_command === undefined) return;
  const shell = process.ppid;
  const watch = setInterval(() => {
    if (process.ppid === shell) return;
    clearInterval(watch);
    process.kill(process.pid, "SIGTERM");
  }, 250);
  watch.unref();
}

/** A clone has the sources, a package what was built from them. */
function moduleOf(name, extension) {
  const source = new URL(`../service/cli/${name}.${extension}`, import.meta.url);
  const built = new URL(`../dist/service/cli/${name}.js`, import.meta.url);
  return (existsSync(source) ? source : built).href;
}

/** The Node that comes with the packages, on platforms that have one. */
function nodeOfPackage() {
  try {
    return createRequire(import.meta.url).resolve(`node-${process.platform}-${process.arch}/bin/node`);
  } catch {
    return null;
  }
}
