import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { REPOSITORY } from "../../repository.ts";
import { newerMinors, readEmbeddedPackages } from "./embedded-versions.ts";

// This checks before a release whether npm has newer minor releases of the embedded Postgres. Exit code 1: it has.

for (const { name, version } of await readEmbeddedPackages()) {
  const { stdout } = await promisify(execFile)("npm", ["view", name, "versions", "--json"], { cwd: REPOSITORY });
  const newer = newerMinors(version, [JSON.parse(stdout)].flat());
  process.stdout.write(`${name} ${version}: ${newer.length === 0 ? "the newest" : `change it to ${newer.at(-1)}`}\n`);
  if (newer.length > 0) process.exitCode = 1;
}
